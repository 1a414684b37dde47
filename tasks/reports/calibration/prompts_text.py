"""Describe in words what other prompts do to a judge's agreement with people."""

from collections.abc import Iterator

from tasks.calibration.prompt_check import PromptCheck
from tasks.runtime.wording import format_percent


def prompt_check_lines(check: PromptCheck) -> Iterator[str]:
    """Yield sentences on the agreement under both sets of prompts, and on whether the other ones help.

    >>> from metric_core.statistics.resampling import Interval
    >>> for line in prompt_check_lines(PromptCheck(94, 0.81, 0.84, Interval(-0.03, 0.09), 5, 2, 0)):
    ...     print(line)
    94 labelled claims: people agree with the prompts of the run on 81.0 %, with these on 84.0 %
    5 verdicts are now as people say and 2 no longer; difference +3.0 points (-3.0 to +9.0)
    these labels cannot tell whether the prompts help
    """
    if check.failed:
        yield f"{check.failed:,} claims without a usable answer are left out"
    yield (
        f"{check.claims:,} labelled claims: people agree with the prompts of the run on "
        f"{format_percent(check.before, 1)}, with these on {format_percent(check.after, 1)}"
    )
    found = check.difference
    interval = "" if found is None else f" ({100 * found.low:+.1f} to {100 * found.high:+.1f})"
    yield (
        f"{check.mended:,} verdicts are now as people say and {check.broken:,} no longer; difference "
        f"{100 * (check.after - check.before):+.1f} points{interval}"
    )
    if found is None or found.low <= 0 <= found.high:
        yield "these labels cannot tell whether the prompts help"
    else:
        yield "the prompts help" if found.low > 0 else "the prompts do harm"
