"""Count who gave the verdicts of a run with a cascade, and show what that rests on."""

from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import ClassVar

from pydantic import Field

from metric_core.calibration.sure_threshold import describe_verdicts
from metric_core.stages import Stage
from tasks.calibration.calibration_files import format_date
from tasks.findings.finding import Finding, RunRecords, WrittenRows
from tasks.findings.parts import Fact
from tasks.record.findings import FindingMap
from tasks.record.part import Part
from tasks.record.run_record import CascadeRecord
from tasks.runs.panel_votes import read_votes
from tasks.runtime.wording import format_percent

_LESS_SURE = 0.001
"""P-value below which the verdicts of a run count as less sure than those that were labelled."""


class CascadeCount(Part):
    """The verdicts that the cheaper judge of a cascade was asked for.

    Args:
        asked: Number of verdicts.
        alone: Number of these that it gave without the other judge.
    """

    asked: int = Field(ge=0)
    alone: int = Field(ge=0)


class CascadeCounts(FindingMap[CascadeCount]):
    """The verdicts of a run with a cascade, as `describe_verdicts` names them, and who gave them."""

    entry: ClassVar[str] = "cascade"


def count_verdicts(rows: WrittenRows) -> Iterator[CascadeCounts]:
    """Yield who gave the verdicts."""
    yield CascadeCounts(count_cascade(rows.folder.path))


def count_cascade(folder: Path) -> dict[str, CascadeCount]:
    """Return who gave the verdicts of a run with a cascade, for summary.json.

    Args:
        folder: Run folder with the stage tables.

    Returns:
        A mapping from the verdicts, as `describe_verdicts` names them, to how many the cheaper judge was asked for and
        gave alone.
    """
    asked: Counter[str] = Counter()
    alone: Counter[str] = Counter()
    for *key, votes in read_votes(folder, Stage.VERDICTS, "kind", "claim_id", "premise"):
        about = describe_verdicts(*map(str, key))
        asked[about] += 1
        alone[about] += len(votes) == 1
    return {about: CascadeCount(asked=count, alone=alone[about]) for about, count in sorted(asked.items())}


def lines_of_cascade(run: RunRecords) -> list[str]:
    """Return who gave which verdicts."""
    return cascade_lines(run.record.cascade, run.summary.find_all(CascadeCounts))


def cascade_facts(run: RunRecords) -> Iterator[Fact]:
    """Yield the lines, for the report."""
    if lines := lines_of_cascade(run):
        yield Fact("Who gave the verdicts", lines)


def cascade_lines(cascade: CascadeRecord | None, counts: Mapping[str, CascadeCount]) -> list[str]:
    """Return who gave which verdicts of a run with a cascade, and what that rests on; nothing without one.

    Args:
        counts: Verdicts, as `describe_verdicts` names them -> who gave them.

    >>> from metric_core.calibration.sure_threshold import SureThreshold
    >>> about = "response claims by all contexts"
    >>> found = SureThreshold("1", "2", about, "faithfulness", "2026-11-26T16:04:00", 0.1, 0.93, 0.6, 122, 4, 0.082)
    >>> known = CascadeRecord(name="builtin", lead="qwen3", judge="1", writer="2", thresholds={about: found})
    >>> other = {"usefulness by each context": CascadeCount(asked=9, alone=0)}
    >>> for line in cascade_lines(known, {about: CascadeCount(asked=812, alone=495), **other}):
    ...     print(line)
    response claims by all contexts: builtin gave 495 of 812 verdicts alone (61 % saved), where it was at least 93.0...
    usefulness by each context: qwen3 gave all 9 verdicts: no labels say how sure builtin must be
    """
    return [] if cascade is None else [_count_line(cascade, *item) for item in counts.items()]


def _count_line(cascade: CascadeRecord, about: str, counts: CascadeCount) -> str:
    asked, alone, name, found = counts.asked, counts.alone, cascade.name, cascade.thresholds.get(about)
    if found is None:
        return f"{about}: {cascade.lead} gave all {asked:,} verdicts: no labels say how sure {name} must be"
    later = ""
    if found.p_as_sure(alone, asked) < _LESS_SURE:
        later = (
            f". {name} is less sure than in the labelled run, where it was so sure of {format_percent(found.share)}: "
            "this share may not hold here, so label some of these verdicts, too"
        )
    return (
        f"{about}: {name} gave {alone:,} of {asked:,} verdicts alone ({format_percent(alone / asked)} saved), where it "
        f"was at least {format_percent(found.least, 1)} sure; {cascade.lead} gave the others. People disagree with "
        f"at most {format_percent(found.limit, 1)} of such answers (95 % confidence; {found.wrong:,} of "
        f"{found.labels:,} labels of {found.metric}, {format_date(found.created)}; accepted: "
        f"{format_percent(found.most, 1)}){later}"
    )


FINDING = Finding(summary=(CascadeCounts,), count=count_verdicts, lines=lines_of_cascade, of_judge=cascade_facts)
