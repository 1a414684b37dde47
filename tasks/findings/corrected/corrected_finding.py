"""Estimate what people would have said about the rows of a run, from labels and scores."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from tasks.calibration.bias_correction import correct_differences, correct_means
from tasks.calibration.corrected_means import CorrectedMeanRecord, CorrectedMeans
from tasks.comparison.run_comparison import RunComparison
from tasks.documents.calibration.correction_text import CorrectionText
from tasks.findings.comparison import ComparedRows, FindingComparison
from tasks.findings.finding import Finding, RunRecords, WrittenRows
from tasks.findings.parts import Templated


def correct(rows: WrittenRows) -> Iterator[CorrectedMeans]:
    """Yield the bias-corrected means."""
    yield CorrectedMeans(correct_means(rows.folder.path, rows.record))


def corrected_lines(run: RunRecords) -> Iterator[str]:
    """Yield the bias-corrected mean of each metric that has one."""
    for metric, mean in run.summary.find_all(CorrectedMeans).items():
        yield f"{metric}: {CorrectionText.of_mean(mean)}"


def below_means(run: RunRecords) -> Mapping[str, Templated]:
    """Return the bias-corrected means, for the report's summary."""
    return {
        metric: Templated("corrected/mean.html.j2", {"correction": CorrectionText.of_mean(mean)})
        for metric, mean in run.summary.find_all(CorrectedMeans).items()
    }


def how_to_read(_run: RunRecords) -> Iterator[str]:
    """Yield what a bias-corrected mean is."""
    yield "A bias-corrected mean estimates the mean that labels by people would have over the scored rows."


@dataclass(frozen=True, slots=True)
class CorrectedDifferences:
    """The differences of the bias-corrected means of two runs, by metric."""

    entry: ClassVar[str] = "bias_corrected"

    metrics: Mapping[str, CorrectedMeanRecord]

    def to_json(self) -> Mapping[str, Any]:
        """Return the differences by metric."""
        return {metric: mean.to_json() for metric, mean in self.metrics.items()}


def compare(rows: ComparedRows) -> CorrectedDifferences | None:
    """Return the differences of the bias-corrected means; None without any."""
    if rows.pair.a is None:
        return None
    before, after = rows.pair.a.run, rows.pair.b.run
    found = correct_differences((before.folder, before.record), (after.folder, after.record), rows.columns)
    return CorrectedDifferences(found) if found else None


def difference_sentences(comparison: RunComparison) -> Iterator[str]:
    """Yield the difference of the bias-corrected means of each metric that has one in both runs."""
    found = comparison.find(CorrectedDifferences)
    for metric, mean in ({} if found is None else found.metrics).items():
        yield f"{metric}: {CorrectionText.of_mean(mean, is_difference=True)}"


FINDING = Finding(
    summary=(CorrectedMeans,),
    count=correct,
    lines=corrected_lines,
    of_metric=below_means,
    reading=how_to_read,
    comparison=FindingComparison(compare=compare, sentences=difference_sentences),
)
