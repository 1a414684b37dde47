"""Count the passages and documents of a run that its askers may not see, for its summary."""

from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from typing import ClassVar

import pyarrow as pa
import pyarrow.compute as pc
from pydantic import Field

from metric_core.declarations.metric import MetricRequest
from metric_core.evidence import Evidence
from metric_core.metrics.leaks import LEAKED_CLAIMS, LEAKED_PASSAGES, find_allowed, passage_ids
from metric_core.schemas import SAMPLES
from tasks.findings.finding import WrittenRows
from tasks.record.findings import FindingPart
from tasks.record.part import Part
from tasks.rows.records import read_samples_table
from tasks.runs.row_grouping import ROW_ID
from tasks.runs.run_folder import RunFolder

MOST_DOCUMENTS = 20
"""Maximum number of documents that are named."""


class LeakedDocument(Part):
    """A document, or a passage of one, that was retrieved for askers who may not see it.

    Args:
        id: Id of the retrieved passage.
        passages: Number of times that it was retrieved for them.
    """

    id: str
    passages: int = Field(ge=0)


class LeakCounts(FindingPart):
    """The leaks of a run.

    Args:
        rows: Rows whose permissions are known.
        leaking: Those with a passage that the asker may not see.
        passages: Number of such passages.
        claiming: Rows whose response has a claim that only such a passage supports, as far as it is known.
        documents: The documents with the most such passages.
        more_documents: Number of the others.
        unnamed: Number of such passages without an id.
        unknown: Reason -> number of rows whose permissions are not known for it.
    """

    entry: ClassVar[str] = "leaks"

    rows: int = Field(ge=0)
    leaking: int = Field(ge=0)
    passages: int = Field(ge=0)
    claiming: int = Field(ge=0)
    documents: tuple[LeakedDocument, ...]
    more_documents: int = Field(ge=0)
    unnamed: int = Field(ge=0)
    unknown: dict[str, int]


def count_leaks(rows: WrittenRows) -> Iterator[LeakCounts]:
    """Yield the leaks of a run that computes the share of leaked passages."""
    requests = {request.metric.name: request for request in reversed(rows.requests)}
    request = requests.get(LEAKED_PASSAGES.name)
    if request is None:
        return
    known, unknown, leaking = 0, Counter[str](), set[str]()
    for row_id, score in rows.folder.read_scores(request.key):
        known += score.value is not None
        if score.value:
            leaking.add(row_id)
        elif score.reason is not None:
            unknown[score.reason] += 1
    ids: Counter[str | None] = Counter(_leaked_ids(rows.folder, request, leaking)) if leaking else Counter()
    named = Counter({name: count for name, count in ids.items() if name is not None})
    shown = named.most_common(MOST_DOCUMENTS)
    yield LeakCounts(
        rows=known,
        leaking=len(leaking),
        passages=ids.total(),
        claiming=_count_claiming(rows.folder, requests.get(LEAKED_CLAIMS.name)),
        documents=tuple(LeakedDocument(id=name, passages=count) for name, count in shown),
        more_documents=len(named) - len(shown),
        unnamed=ids[None],
        unknown=dict(unknown.most_common()),
    )


def _leaked_ids(folder: RunFolder, request: MetricRequest, leaking: Collection[str]) -> Iterator[str | None]:
    """Yield the id of each leaked passage of some rows; None for one without an id."""
    wanted = pa.array(sorted(leaking), pa.string())
    for shard in folder.read_samples(SAMPLES.arrow.names):
        for sample in read_samples_table(shard.filter(pc.is_in(shard[ROW_ID], value_set=wanted))):
            allowed = find_allowed(request.values, Evidence(sample))
            if isinstance(allowed, Sequence):
                yield from (name for name, may_see in zip(passage_ids(sample), allowed, strict=True) if not may_see)


def _count_claiming(folder: RunFolder, request: MetricRequest | None) -> int:
    return 0 if request is None else sum(bool(score.value) for _, score in folder.read_scores(request.key))
