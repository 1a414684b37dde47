"""Measure how often the diagnosis of the handbook's rows names the planted fault.

    PYTHONPATH=. python benchmarks/diagnosis.py

Prints the confusion matrix and the balanced accuracy (mean recall over the classes) for a judge that knows the truth,
and for the built-in judge. Needs no server and a minute.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean

import pyarrow as pa

from benchmarks.handbook_truth import FILES, Row, Truth, diagnosis_of, read_rows
from flows.planning.metric_plan import plan_requests
from metric_core.diagnosis.classes import CLASSES, UNDIAGNOSED, diagnose
from metric_core.stages import Stage
from tasks.engine.registry import LEVELS, STAGES
from tasks.models.embedders.protocol import Embedder
from tasks.models.judges.protocol import Judge
from tasks.models.judges.scripted import ScriptedJudge
from tasks.models.protocol import Models
from tasks.models.recognizers.spacy_pipeline import SpacyPipeline
from tasks.opening.run_models import RunModels
from tasks.options.evaluation_options import EvaluationOptions
from tasks.options.judged_settings import JudgedSettings
from tasks.plugins.metric_lookup import parse_metric
from tasks.rows.records import build_table, read_samples_table
from tasks.rows.sample_evidence import read_evidence

METRICS = (
    *("faithfulness", "context_recall", "factual_correctness", "noise_sensitivity", "context_precision"),
    "abstention_accuracy",
)
"""Metrics that ask for the verdicts of every class."""

_COLUMNS = ("user_input", "response", "retrieved_contexts", "reference")


@dataclass(frozen=True, slots=True)
class Confusion:
    """Counts of the diagnoses of the rows with each planted fault.

    Args:
        counts: (right diagnosis, diagnosis found) -> number of rows.
    """

    counts: Mapping[tuple[str, str], int]

    @property
    def recalls(self) -> dict[str, float]:
        """Right diagnosis -> share of its rows that have it."""
        rows = Counter[str]()
        for (right, _), count in self.counts.items():
            rows[right] += count
        return {right: self.counts.get((right, right), 0) / count for right, count in rows.items()}

    @property
    def balanced_accuracy(self) -> float:
        """Mean of the recalls."""
        return fmean(self.recalls.values())

    def lines(self) -> list[str]:
        """Return the matrix as a Markdown table: a row per right diagnosis, a column per diagnosis found."""
        found = [*(each.name for each in CLASSES), UNDIAGNOSED]
        right = [name for name in found if name in self.recalls]
        cells = [
            [name, *(str(self.counts.get((name, other), 0) or "") for other in found), f"{self.recalls[name]:.2f}"]
            for name in right
        ]
        heading = ["planted", *found, "recall"]
        return [f"| {' | '.join(line)} |" for line in (heading, ["---"] * len(heading), *cells)]


@dataclass(frozen=True)
class _TruthfulModels:
    """The models of a run whose judge answers from a script."""

    script: Truth

    def judge(self) -> Judge:
        return ScriptedJudge(self.script)

    def pipeline(self) -> SpacyPipeline:
        return SpacyPipeline()

    def embedder(self) -> Embedder:
        raise NotImplementedError


def diagnose_rows(rows: Sequence[Row], metrics: Sequence[str], judge: Truth | None) -> dict[str, str]:
    """Return the diagnosis of each row by its id.

    Args:
        rows: Rows of the examples.
        metrics: Metrics of the run.
        judge: The judge that knows the truth; None for the built-in judge.
    """
    options = EvaluationOptions(source="rows")
    plan = plan_requests(options, map(parse_metric, metrics), ())
    settings, run_models = plan.stage_settings(options), RunModels()
    samples = [{"row_id": row["id"], "row_number": i, **{c: row[c] for c in _COLUMNS}} for i, row in enumerate(rows)]
    tables: dict[Stage, pa.Table] = {Stage.SAMPLES: build_table(Stage.SAMPLES, samples)}
    for stage in (stage for level in LEVELS for stage in level):
        if stage in plan.sharded_stages and stage is not Stage.AGGREGATION:
            needs_judge = isinstance(settings[stage], JudgedSettings)
            models: Models = _TruthfulModels(judge) if judge and needs_judge else run_models.select(settings[stage])
            inputs = {name: tables[name] for name in plan.inputs_of(stage) if name in tables}
            tables[stage] = STAGES[stage].compute(inputs, settings[stage], models).table
    evidence = read_evidence(read_samples_table(tables[Stage.SAMPLES]), tables, "binary")
    return {each.sample.row_id: diagnose(each, plan.products).name or UNDIAGNOSED for each in evidence}


def measure(judge: Truth | None = None, *, with_truth: bool = False) -> Confusion:
    """Return the confusion matrix over both versions of the examples.

    Args:
        judge: The judge to use; None for the built-in judge.
        with_truth: True for a judge that knows the truth about each file.
    """
    counts = Counter[tuple[str, str]]()
    for name in FILES:
        rows = read_rows(name)
        found = diagnose_rows(rows, METRICS, Truth(rows) if with_truth else judge)
        counts.update((diagnosis_of(row), found[row["id"]]) for row in rows)
    return Confusion(counts)


def main() -> None:
    """Print both matrices."""
    for title, with_truth in (("judge that knows the truth", True), ("built-in judge", False)):
        confusion = measure(with_truth=with_truth)
        print(f"\n{title}: balanced accuracy {confusion.balanced_accuracy:.2f}\n")
        print("\n".join(confusion.lines()))


if __name__ == "__main__":
    main()
