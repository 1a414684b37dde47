"""List what people can label in a run: its rows, or the single claims and passages that a metric reads verdicts on.

An item is known by the digest of the texts that people see, so that its label holds in every run with the same texts.
"""

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import pyarrow as pa

from metric_core.calibration.verdict_weights import verdict_weights
from metric_core.declarations.metric import MetricRequest
from metric_core.errors import ConfigError
from metric_core.evidence import ALL_CONTEXTS, BY_REFERENCE, BY_RESPONSE, SOURCES, Evidence
from metric_core.joint_contexts import contexts_of
from metric_core.records import PREMISE_TEXT, Sample, Status, VerdictKey, VerdictKind
from metric_core.stages import PRODUCT_STAGES, Stage
from tasks.calibration.run_labels import PART
from tasks.rows.records import read_samples_table
from tasks.rows.sample_evidence import read_asked_probabilities, read_evidence
from tasks.runs.finished_run import FinishedRun

_DIGEST = 32
"""Length of a digest, in hexadecimal digits."""
_ASKS = {
    BY_REFERENCE: "Does the reference support this claim?",
    BY_RESPONSE: "Does the answer say this?",
}
_SUPPORTED = "Do the passages, taken together, support this claim?"
_RELEVANT = "Does this sentence help to answer the question?"


@dataclass(frozen=True, slots=True)
class LabelTexts:
    """The texts of an item that people see.

    Args:
        ask: Question to the people; empty for a row.
        claim: Claim or sentence that is judged; empty for a row.
        passages: Passages, or the texts in their place that the claim is judged by.
    """

    ask: str
    question: str | None
    claim: str
    passages: tuple[str, ...]
    answer: str | None = None
    reference: str | None = None

    def digest(self, metric: str) -> str:
        """Return the digest of the texts; that of a row is for one metric.

        Args:
            metric: Key of the metric, which is not part of the digest of a claim.
        """
        about = [self.ask or metric, self.question, self.claim, self.passages, self.answer, self.reference]
        return _digest(about)


Vote: TypeAlias = tuple[str, str | None, float | None]
"""Judge, its label, and its probability of the label."""


@dataclass(frozen=True, slots=True)
class LabelItem:
    """A row or a verdict that people can label.

    Args:
        key: Name of the item in its run.
        digest: Digest of the texts that people see.
        score: Score of the row, or support of the claim, from 0 to 1.
        weight: Part of the item in the mean score: 1 for a row, less for one of several claims of a row.
        verdict: Kind, claim and premise; None for a row.
        probability: The judge's probability that the label is yes; None without one.
        votes: Judge, label and probability of the label of each judge of a panel or cascade that was asked.
    """

    key: str
    row_id: str
    digest: str
    score: float
    weight: float = 1.0
    verdict: VerdictKey | None = None
    probability: float | None = None
    votes: tuple[Vote, ...] = ()

    @property
    def is_split(self) -> bool:
        """True if the judges of a panel or cascade disagree."""
        return len({label for _, label, _ in self.votes if label is not None}) > 1

    @property
    def belief(self) -> float:
        """The judge's probability that the label is yes; the score without one."""
        return self.score if self.probability is None else self.probability

    def sureness(self, judge: str) -> float:
        """Return the probability that a judge gave its own label as the first one asked; 0 without one."""
        return self.votes[0][2] or 0.0 if self.votes and self.votes[0][0] == judge else 0.0


def list_rows(run: FinishedRun, metric: str, request: MetricRequest | None = None) -> list[LabelItem]:
    """Return the rows that a metric has scored.

    Args:
        request: The metric, if the items are to have its scores by the judge's probabilities.

    Raises:
        ConfigError: The run has no such metric, or its values are categories.
    """
    known = {metric.key: metric.bounds for metric in run.record.metrics}
    if metric not in known:
        raise ConfigError(f"the run {run.folder} has no metric {metric!r}; it has: {', '.join(known)}")
    items = []
    for shard in run.samples():
        samples = read_samples_table(shard)
        scores = _scores(run, metric, [sample.row_id for sample in samples])
        scored = [sample for sample in samples if sample.row_id in scores]
        beliefs = {} if request is None else _beliefs(run, request, scored)
        for sample in scored:
            row_id, digest = sample.row_id, row_texts(sample).digest(metric)
            belief = beliefs.get(row_id)
            items.append(LabelItem(row_id, row_id, digest, scores[row_id], probability=belief))
    found = [item.score for item in items] or [0.0]
    low, high = map(float, known[metric] or (min(found), max(found)))

    def scale(score: float) -> float:
        return min(max((score - low) / ((high - low) or 1.0), 0.0), 1.0)

    return [
        replace(
            item, score=scale(item.score), probability=None if item.probability is None else scale(item.probability)
        )
        for item in items
    ]


def _beliefs(run: FinishedRun, request: MetricRequest, samples: Sequence[Sample]) -> dict[str, float]:
    """Return the scores of rows by the judge's probabilities; rows without one are missing."""
    tables = _stage_tables(run, [sample.row_id for sample in samples])
    found = {
        evidence.sample.row_id: request.score(evidence).value
        for evidence in read_evidence(samples, tables, "probability")
    }
    return {row_id: value for row_id, value in found.items() if value is not None}


def list_verdicts(run: FinishedRun, request: MetricRequest) -> list[LabelItem]:
    """Return the verdicts whose mean a metric is, row by row; rows without a score have none.

    Raises:
        ConfigError: The metric is not a mean of verdicts.
    """
    items: list[LabelItem] = []
    for shard in run.samples():
        ids = shard["row_id"].to_pylist()
        scored = _scores(run, request.key, ids)
        tables = _stage_tables(run, ids)
        asked = read_asked_probabilities(tables)
        votes = _votes(tables)
        samples = [sample for sample in read_samples_table(shard) if sample.row_id in scored]
        for evidence in read_evidence(samples, tables, run.record.config.verdict):
            row_id = evidence.sample.row_id
            weights = verdict_weights(request, evidence)
            if weights is None:
                raise ConfigError(
                    f"{request.key} is not a mean of verdicts in the row {row_id!r}, so that labels of single claims "
                    "do not correct it; label rows instead (without --claims)"
                )
            texts = verdict_texts(evidence, tables.get(Stage.VERDICTS))
            digests = {key: texts[key].digest(request.key) for key in weights}
            for key, weight in weights.items():
                items.append(
                    LabelItem(
                        key=PART.join((row_id, *key)),
                        row_id=row_id,
                        digest=digests[key],
                        score=float(evidence.verdicts[key] or 0.0),
                        weight=weight,
                        verdict=key,
                        probability=asked.get(row_id, {}).get(key),
                        votes=votes.get((row_id, *key), ()),
                    )
                )
    if not items:
        raise ConfigError(f"{request.key} has no verdicts in {run.folder} that people could label")
    return items


def digest_frame(items: Sequence[LabelItem]) -> str:
    """Return the digest of all items that could have been drawn."""
    return hashlib.sha256("\n".join(sorted({item.digest for item in items})).encode()).hexdigest()[:_DIGEST]


def read_texts(run: FinishedRun, items: Sequence[LabelItem]) -> dict[str, LabelTexts]:
    """Return the texts of items, by key."""
    wanted: dict[str, list[LabelItem]] = {}
    for item in items:
        wanted.setdefault(item.row_id, []).append(item)
    found = {}
    for shard in run.samples():
        samples = [sample for sample in read_samples_table(shard) if sample.row_id in wanted]
        ids = [sample.row_id for sample in samples]
        if not ids:
            continue
        if all(item.verdict is None for item in items):
            found.update({sample.row_id: row_texts(sample) for sample in samples})
            continue
        tables = _stage_tables(run, ids)
        for evidence in read_evidence(samples, tables, "binary"):
            texts = verdict_texts(evidence, tables.get(Stage.VERDICTS))
            for item in wanted[evidence.sample.row_id]:
                if item.verdict is not None:
                    found[item.key] = texts[item.verdict]
    return found


def row_texts(sample: Sample) -> LabelTexts:
    """Return what people see of a row."""
    passages = sample.retrieved_contexts or ()
    return LabelTexts("", sample.user_input, "", passages, sample.response, sample.reference)


def verdict_texts(evidence: Evidence, verdicts: pa.Table | None) -> Mapping[VerdictKey, LabelTexts]:
    """Return what people see of each verdict of a row.

    Args:
        verdicts: Table of verdicts of this row and others, which has the texts of requested verdicts.
    """
    sample = evidence.sample
    claims = {name: text for of_side in evidence.claims.values() for name, text in of_side.items()}
    own: dict[VerdictKey, Mapping[str, Any]] = {}
    if verdicts is not None and verdicts["statement"].null_count + verdicts["premise_text"].null_count < 2 * len(
        verdicts
    ):
        own = {
            (VerdictKind(row["kind"]), row["claim_id"], row["premise"]): row
            for row in verdicts.to_pylist()
            if row["row_id"] == sample.row_id
        }
    found = {}
    for key in evidence.verdicts:
        kind, claim_id, premise = key
        row = own.get(key, {})
        claim = row.get("statement") or claims.get(claim_id, "")
        passages = (row["premise_text"],) if row.get("premise_text") else tuple(_premises(sample, premise))
        ask = _RELEVANT if kind is VerdictKind.RELEVANCE else _ASKS.get(premise, _SUPPORTED)
        found[key] = LabelTexts(ask, sample.user_input, claim, passages)
    return found


def _premises(sample: Sample, premise: str) -> Iterator[str]:
    """Yield the texts of a premise."""
    if premise in (ALL_CONTEXTS, SOURCES):
        yield from sample.retrieved_contexts or ()
        if premise == SOURCES:
            yield from (*(sample.earlier_contexts or ()), *(sample.tool_results or ()))
    elif premise == BY_REFERENCE:
        yield sample.reference or ""
    elif premise == BY_RESPONSE:
        yield sample.response or ""
    elif not premise.startswith(f"{PREMISE_TEXT}:"):
        contexts = sample.retrieved_contexts or ()
        yield from (contexts[index] for index in contexts_of(premise))


def _digest(content: Sequence[Any]) -> str:
    return hashlib.sha256(json.dumps(content).encode()).hexdigest()[:_DIGEST]


def _scores(run: FinishedRun, metric: str, ids: Sequence[str]) -> dict[str, float]:
    """Return the score of each row that a metric has scored.

    Raises:
        ConfigError: Its values are categories.
    """
    cells = [cell for cell in run.rows(Stage.AGGREGATION, ids).to_pylist() if cell["metric"] == metric]
    scored = {cell["row_id"]: cell["value"] for cell in cells if cell["status"] == Status.SCORED}
    if None in scored.values():
        raise ConfigError(f"the values of {metric} are categories, which labels cannot correct")
    return scored


def _stage_tables(run: FinishedRun, ids: Sequence[str]) -> dict[Stage, pa.Table]:
    stages = list(run.record.stages)
    return {stage: run.rows(stage, ids) for stage in stages if stage in PRODUCT_STAGES}


def _votes(tables: Mapping[Stage, pa.Table]) -> dict[tuple[str, VerdictKind, str, str], tuple[Vote, ...]]:
    """Return the votes of the judges of a panel or cascade on each verdict."""
    table = tables.get(Stage.VERDICTS)
    if table is None or table["panel"].null_count == len(table):
        return {}
    return {
        (row["row_id"], VerdictKind(row["kind"]), row["claim_id"], row["premise"]): tuple(
            (vote["judge"], vote["label"], vote["probability"]) for vote in row["panel"]
        )
        for row in table.select(["row_id", "kind", "claim_id", "premise", "panel"]).to_pylist()
        if row["panel"]
    }
