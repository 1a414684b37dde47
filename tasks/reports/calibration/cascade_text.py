"""Describe a cascade of judges: how sure the cheaper one must be, which labels say so, and what it saves."""

from collections.abc import Iterator, Mapping

from metric_core.calibration.sure_answers import SurePoint
from tasks.calibration.calibration_files import Calibration, JudgeSureness, format_date
from tasks.record.run_record import CascadeRecord
from tasks.record.run_summary import CascadeCount
from tasks.runtime.wording import format_percent


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
    return (
        f"{about}: {name} gave {alone:,} of {asked:,} verdicts alone ({format_percent(alone / asked)} saved), where it "
        f"was at least {format_percent(found.least, 1)} sure; {cascade.lead} gave the others. People disagree with "
        f"at most {format_percent(found.limit, 1)} of such answers (95 % confidence; {found.wrong:,} of "
        f"{found.labels:,} labels of {found.metric}, {format_date(found.created)}; accepted: "
        f"{format_percent(found.most, 1)})"
    )


def sureness_lines(calibration: Calibration) -> Iterator[str]:
    """Yield what the labels of a calibration say of the cheaper judge of a cascade."""
    for each in calibration.sure:
        point = each.answers.choose(each.most)
        found = _refusal(each) if point is None else _acceptance(each, point)
        yield f"cascade, {each.about}: {found}"


def _acceptance(each: JudgeSureness, point: SurePoint) -> str:
    return (
        f"{each.name} answers where it is at least {format_percent(point.least, 1)} sure, "
        f"{format_percent(point.share)} of {each.answers.verdicts:,} verdicts. People disagree with at most "
        f"{format_percent(point.limit, 1)} of these (95 % confidence; {point.wrong:,} of {point.labels:,} labels)"
    )


def _refusal(each: JudgeSureness) -> str:
    needed = each.answers.labels_needed(each.most)
    said = (
        f"{each.name} answers nothing alone: {each.answers.labels:,} labels do not show that people disagree with at "
    )
    said += f"most {format_percent(each.most, 1)} of its answers"
    if not each.answers.points:
        return f"{said}, since it gives no probabilities"
    if needed is None or needed <= each.answers.labels:
        return f"{said}, and more labels like these would not, however sure it is"
    return f"{said}. About {needed:,} labels like these might"
