"""Compare scores from verdicts that count as 0 or 1 with scores from probabilities, for the built-in judge.

    PYTHONPATH=. python benchmarks/verdict_kinds.py [DATA SET ...]

Every data set is judged once; each metric is then computed from the same verdicts in both ways. The table has the
agreement of both with the labels (AUROC for labels of two values, else Spearman's correlation), the difference, and
intervals from a paired bootstrap by group. Needs the labelled data in `../shared/meta_eval` beside the repository, and
about ten minutes; says so and ends without the data.
"""

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from scipy.stats import rankdata, spearmanr

from benchmarks.labelled_examples import DATA, rows
from flows.planning.metric_plan import plan_requests
from metric_core.declarations.metric import MetricRequest
from metric_core.stages import Stage
from tasks.engine.registry import LEVELS, STAGES
from tasks.opening.run_models import RunModels
from tasks.options.evaluation_options import EvaluationOptions
from tasks.plugins.metric_lookup import parse_metric
from tasks.rows.records import build_table, read_samples_table
from tasks.rows.sample_evidence import read_evidence

Floats = NDArray[np.float64]

DRAWS = 2000
KINDS = ("binary", "probability")


@dataclass(frozen=True, slots=True)
class Labelled:
    """A metric and the labels that it should agree with.

    Args:
        file: Name of the file.
        metric: Metric, with parameters in parentheses.
        label: Column of the labels.
        sign: -1 if a greater label means a smaller score.
        step: Every `step`-th group is used.
    """

    file: str
    metric: str
    label: str
    sign: int = 1
    step: int = 1


SETS = (
    Labelled("faithfulness_qags", "faithfulness", "label_consistent"),
    Labelled("faithfulness_faithbench", "faithfulness", "label_hallucinated", sign=-1),
    Labelled("faithfulness_ragtruth_qa", "faithfulness", "label_hallucinated", sign=-1),
    Labelled("rag_mtrag_human", "faithfulness", "label_faithfulness"),
    Labelled("claims_factscore", "faithfulness", "label_precision"),
    Labelled("faithfulness_begin", "faithfulness", "label_attributable"),
    Labelled("claims_wice", "faithfulness", "label_supported"),
    Labelled("claims_factcheck_stance", "faithfulness", "label_supported"),
    Labelled("context_recall_clapnq", "context_recall", "label_recall"),
    Labelled("context_precision_typed", "context_precision", "label_average_precision"),
    Labelled("answer_correctness_nq301", "factual_correctness", "label_correct"),
    Labelled("answer_correctness_evouna", "factual_correctness", "label_correct", step=10),
    Labelled("rag_mtrag_human", "factual_correctness(mode=recall)", "label_completeness"),
    Labelled("noise_sensitivity", "noise_sensitivity", "label_noise_sensitivity"),
)


def main() -> None:
    """Print one line per data set and metric."""
    if not DATA.is_dir():
        sys.exit(f"skipped: the labelled data is missing, there is no {DATA}")
    chosen = sys.argv[1:]
    models = RunModels()
    print(
        f"{'data':26} {'metric':32} {'rows':>5} {'at 0 or 1':>9}  {'binary':^22} {'probability':^22} {'difference':^24}"
    )
    for labelled in SETS:
        if not chosen or labelled.file in chosen:
            _print_line(labelled, models)


def _print_line(labelled: Labelled, models: RunModels) -> None:
    labels, groups, scores = _score(labelled, models)
    is_binary = len(np.unique(labels)) == 2
    measure = auroc if is_binary else spearman
    at_ends = float(np.isin(scores["binary"], (0.0, 1.0)).mean())
    values = [measure(labels, scores[kind]) for kind in KINDS]
    draws = np.array([[measure(labels[drawn], scores[kind][drawn]) for kind in KINDS] for drawn in resamples(groups)])
    draws = draws[np.isfinite(draws).all(axis=1)]
    columns = [with_interval(value, draws[:, i]) for i, value in enumerate(values)]
    difference = with_interval(values[1] - values[0], draws[:, 1] - draws[:, 0], sign="+")
    print(
        f"{labelled.file:26} {labelled.metric:32} {len(labels):5} {at_ends:9.0%}  {columns[0]:22} {columns[1]:22} "
        f"{difference:24} {'AUROC' if is_binary else 'Spearman'}",
        flush=True,
    )


def with_interval(value: float, draws: Floats, sign: str = "", decimals: int = 3) -> str:
    """Return a value with the interval of its draws, in words."""
    low, high = np.quantile(draws, [0.025, 0.975])
    return f"{value:{sign}.{decimals}f} [{low:{sign}.{decimals}f}, {high:{sign}.{decimals}f}]"


def _score(labelled: Labelled, models: RunModels) -> tuple[Floats, NDArray[np.str_], Mapping[str, Floats]]:
    """Return labels, groups and the scores of both kinds, for the rows that both kinds score."""
    found = [row for row in rows(labelled.file) if row[labelled.label] is not None]
    kept = set(sorted({row["group_id"] for row in found})[:: labelled.step])
    found = [row for row in found if row["group_id"] in kept]
    request = parse_metric(labelled.metric)
    scores = evaluate(found, request, models)
    cells = [
        (labelled.sign * float(row[labelled.label]), row["group_id"], *(scores[kind][str(number)] for kind in KINDS))
        for number, row in enumerate(found)
    ]
    scored = [cell for cell in cells if None not in cell]
    labels, groups, *values = zip(*scored, strict=True)
    return np.array(labels), np.array(groups), dict(zip(KINDS, map(np.array, values), strict=True))


def evaluate(
    found: Sequence[Mapping[str, Any]], request: MetricRequest, models: RunModels
) -> dict[str, dict[str, float | None]]:
    """Return the score of each row by kind of verdict and number of the row."""
    # With probabilities, all verdicts are asked for: those that binary scores read are among them.
    options = EvaluationOptions(verdict="probability")
    plan = plan_requests(options, [request], ())
    settings = plan.stage_settings(options)
    columns = {"user_input", "response", "reference", "retrieved_contexts", "earlier_contexts"}
    records = [
        {"row_id": str(number), "row_number": number + 1} | {name: row.get(name) for name in columns}
        for number, row in enumerate(found)
    ]
    tables: dict[Stage, pa.Table] = {Stage.SAMPLES: build_table(Stage.SAMPLES, records)}
    for stage in (stage for level in LEVELS for stage in level if stage in plan.cached_stages):
        inputs = {name: tables[name] for name in plan.inputs_of(stage)}
        tables[stage] = STAGES[stage].compute(inputs, settings[stage], models.select(settings[stage])).table
    samples = read_samples_table(tables[Stage.SAMPLES])
    return {
        kind: {
            evidence.sample.row_id: request.score(evidence).value for evidence in read_evidence(samples, tables, kind)
        }
        for kind in KINDS
    }


def auroc(labels: Floats, values: Floats) -> float:
    """Return the area under the ROC curve; NaN if all labels are equal."""
    positive = labels == labels.max()
    count = int(positive.sum())
    if count in (0, len(labels)):
        return float("nan")
    ranks = rankdata(values)
    return float((ranks[positive].sum() - count * (count + 1) / 2) / (count * (len(labels) - count)))


def spearman(labels: Floats, values: Floats) -> float:
    """Return Spearman's rank correlation; NaN if all labels or all values are equal."""
    if len(np.unique(labels)) == 1 or len(np.unique(values)) == 1:
        return float("nan")
    return float(spearmanr(labels, values).statistic)


def resamples(groups: NDArray[np.str_]) -> list[NDArray[np.int64]]:
    """Return the rows of each draw of the bootstrap, which draws whole groups."""
    generator = np.random.default_rng(1)
    _, numbers = np.unique(groups, return_inverse=True)
    members = [np.flatnonzero(numbers == number) for number in range(numbers.max() + 1)]
    draw = partial(generator.integers, 0, len(members), len(members))
    return [np.concatenate([members[number] for number in draw()]) for _ in range(DRAWS)]


if __name__ == "__main__":
    main()
