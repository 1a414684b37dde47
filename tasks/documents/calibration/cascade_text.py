"""Describe what labels say of the cheaper judge of a cascade."""

from collections.abc import Iterator

from metric_core.calibration.sure_answers import SurePoint
from tasks.calibration.calibration_files import Calibration, JudgeSureness
from tasks.runtime.wording import format_percent


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
