"""Describe the agreement of a judge with people: a sentence for summaries and reports, a table as Markdown."""

from collections.abc import Iterator
from pathlib import PurePosixPath

from metric_core.calibration.calibrate import FIGURES, Figure
from metric_core.calibration.figure_intervals import TOO_FEW
from metric_core.calibration.label_needs import rows_to_reach
from tasks.calibration.bias_correction import Method
from tasks.calibration.calibration_files import Calibration, SavedCalibration, format_date
from tasks.calibration.corrected_means import CorrectedMeanRecord
from tasks.calibration.human_agreement import read_agreements
from tasks.documents.blocks import Line, Table, make_table, own
from tasks.documents.calibration.correction_text import CorrectionText
from tasks.documents.figures import format_fixed
from tasks.documents.markdown import to_markdown
from tasks.models.judges.protocol import NO_JUDGE
from tasks.record.judge_quality import CalibratedMetric
from tasks.record.run_record import RunRecord

_HEADLINES = {"kappa": "kappa", "auroc": "AUROC", "spearman": "Spearman"}
"""Figures in a sentence, if the calibration has them."""

_ERROR = "calibration_error"
_MOST_NAMES = 4
_BARS = (0.4, 0.6, 0.8)
"""Agreements that gates commonly require."""

NOT_CALIBRATED = "not calibrated: how far this judge agrees with people on data like this has not been measured"


def agreement_lines(record: RunRecord) -> list[str]:
    """Return the judge's agreement with people, a line per metric that asks a judge; nothing for a run without one."""
    if record.judge.backend == NO_JUDGE.backend:
        return []
    known, verdict = record.calibration.metrics, record.config.verdict
    lines = [f"{metric}: {_sentence(facts, verdict)}" for metric, facts in known.items()]
    others = [key for key in read_agreements(record) if key not in known]
    if known and others:
        lines.append(f"not calibrated: {', '.join(others) if len(others) <= _MOST_NAMES else f'{len(others)} others'}")
    return [*(lines or [NOT_CALIBRATED]), *record.calibration.not_covered]


def saved_line(saved: SavedCalibration) -> str:
    """Return a line about a saved calibration: metric, judge, agreement and file."""
    calibration = saved.calibration
    sentence = _sentence(calibration.to_record(calibration.verdict, applied=False), calibration.verdict)
    replaced = "" if saved.is_latest else ", replaced by a later one"
    return f"{calibration.metric} by {calibration.judge}: {sentence}{replaced}: {saved.path}"


def _sentence(facts: CalibratedMetric, verdict: str) -> str:
    """Return a calibration in one line.

    Args:
        verdict: `binary` or `probability`, as verdicts count in the run.

    >>> found = {"figures": {"kappa": {"value": 0.615, "low": 0.4, "high": 0.8}}, "compared": 66, "verdict": "binary"}
    >>> facts = CalibratedMetric(source="a/b.jsonl", created="2026-11-21T16:04:00+00:00", **found)
    >>> _sentence(facts, "binary")
    'kappa 0.615 (0.400 to 0.800), 66 rows of b.jsonl, 2026-11-21'
    """
    figures = [
        f"{title} {_format_value(facts.figures[name])}" for name, title in _HEADLINES.items() if name in facts.figures
    ]
    rows = f"{facts.compared:,} rows of {PurePosixPath(facts.source).name}"
    mapped = ["probabilities mapped by it"] if facts.applied else []
    otherwise = [] if facts.verdict == verdict else [f"measured with verdict = {facts.verdict}"]
    return ", ".join([*figures, rows, format_date(facts.created), *mapped, *otherwise])


def figure_table(calibration: Calibration) -> Table:
    """Return the figures with their intervals; of a calibration error only the upper limit says something."""
    rows = [
        (own(title), "" if name == _ERROR else format_fixed(figure.value), _format_interval(figure, name))
        for name, title in FIGURES.items()
        if (figure := calibration.figures.get(name)) is not None
    ]
    return make_table(("figure", "value", "95 % interval"), rows)


def count_line(calibration: Calibration) -> str:
    """Return the numbers of rows that the figures rest on."""
    counts = calibration.counts
    yes = "" if counts.positive is None else f" ({counts.positive:,} yes, {counts.compared - counts.positive:,} no)"
    excluded = {"unlabelled": counts.unlabelled, "undefined": counts.undefined, "failed": counts.failed}
    without = ", ".join(f"{count:,} {what}" for what, count in excluded.items() if count)
    looked = "" if calibration.look == 1 else f"; look {calibration.look} at these labels: limits hold over all looks"
    return f"{counts.compared:,} of {counts.rows:,} rows compared{yes}{f'; {without}' if without else ''}{looked}"


def annotator_lines(calibration: Calibration) -> Iterator[str]:
    """Yield a line with the names of who labelled the rows; nothing if no names are known."""
    names = sorted(calibration.annotators.items(), key=lambda item: -item[1])
    if names:
        others = len(names) - _MOST_NAMES
        shown = [f"{name} ({count:,})" for name, count in names[:_MOST_NAMES]]
        yield f"labelled by {', '.join([*shown, *([f'{others} others'] if others > 0 else [])])}"


def result_lines(metric: str, corrected: CorrectedMeanRecord | None, needed: int | None = None) -> Iterator[str]:
    """Yield what a calibration says about the run of the labelled rows.

    Args:
        corrected: Bias-corrected mean of the metric; None if there is none.
        needed: Number of more labels that would halve the interval of that mean; None if none would.
    """
    if corrected is not None:
        yield f"{metric}: {CorrectionText.of_mean(corrected)}"
        if corrected.method != Method.JUDGE and corrected.value is not None:
            yield f"labels needed: {needed_words(needed, corrected)}"


def needed_words(needed: int | None, corrected: CorrectedMeanRecord) -> str:
    """Return how many more labels would halve the interval of a bias-corrected mean.

    >>> basis = {"label": "good", "span": None, "value": 0.5, "low": 0.25, "high": 0.75, "reason": "", "labelled": 100}
    >>> mean = CorrectedMeanRecord(**basis, method="labels alone", rows=276)
    >>> needed_words(150, mean)
    'about 150 more would halve this interval'
    >>> needed_words(300, mean)
    'about 300 more would halve this interval; the run has 276 scored rows, so it would have to be larger'
    >>> needed_words(None, mean)
    'no number would halve this interval: the 276 scored rows leave too much open'
    """
    if needed is None:
        return f"no number would halve this interval: the {corrected.rows:,} scored rows leave too much open"
    words = f"about {needed:,} more would halve this interval"
    if needed + (corrected.labelled or 0) > corrected.rows:
        return f"{words}; the run has {corrected.rows:,} scored rows, so it would have to be larger"
    return words


def reach_lines(calibration: Calibration) -> Iterator[str]:
    """Yield how many labelled rows a gate about the judge's agreement would need.

    The gate reads the lower end of the interval of kappa, or of Spearman's correlation for grades.
    """
    for name in ("kappa", "spearman"):
        figure = calibration.figures.get(name)
        if figure is None or figure.interval is None:
            continue
        rows = calibration.counts.compared
        needed = {
            bar: rows_to_reach(figure.value, figure.interval.low, bar, rows)
            for bar in _BARS
            if figure.interval.low < bar < figure.value
        }
        parts = [f"{bar} with about {number:,}" for bar, number in needed.items() if number is not None]
        if parts:
            yield f"the lower end of {_HEADLINES[name]}, which gates read, would reach {', '.join(parts)} labelled rows"


def calibration_markdown(calibration: Calibration) -> str:
    """Return the calibration as Markdown, without text of the data."""
    judge, label = str(calibration.judge), calibration.label
    title = Line((calibration.metric, own(" by "), judge, own(", compared with the labels in "), label))
    return to_markdown([title, Line(own(count_line(calibration))), figure_table(calibration)])


def _format_value(figure: Figure) -> str:
    return f"{format_fixed(figure.value)} ({_format_interval(figure)})"


def _format_interval(figure: Figure, name: str = "") -> str:
    if figure.interval is None:
        return f"no interval: {TOO_FEW}"
    if name == _ERROR:
        return f"at most {format_fixed(figure.interval.high)}"
    return f"{format_fixed(figure.interval.low)} to {format_fixed(figure.interval.high)}"
