"""Describe what the claims of a response cite, for a page: the passages of each label, and where a claim is found."""

from collections.abc import Mapping, Sequence
from typing import Any

from metric_core.claims.cited_contexts import cited_contexts, first_number
from metric_core.evidence import ALL_CONTEXTS
from metric_core.joint_contexts import contexts_of
from metric_core.records import Sample
from tasks.reports.truncation import Row


def citations_view(sample: Row, claims: Sequence[Row], verdicts: Mapping[str, Sequence[Row]]) -> dict[str, Any]:
    """Return what each claim of a row cites, by claim id.

    Args:
        claims: Claims and sentences of the row.
        verdicts: Claim id -> verdicts on the claim by premises.
    """
    contexts, ids = sample["retrieved_contexts"] or (), sample["retrieved_context_ids"]
    row = Sample(retrieved_contexts=tuple(contexts), retrieved_context_ids=None if ids is None else tuple(ids))
    first = first_number((label for claim in claims for label in claim.get("citations") or ()), row)
    return {
        claim["claim_id"]: _claim_view(
            {label: cited_contexts((label,), row, first) for label in claim["citations"]},
            verdicts.get(claim["claim_id"], ()),
            len(contexts),
        )
        for claim in claims
        if claim.get("citations")
    }


def _claim_view(citations: Mapping[str, tuple[int, ...]], verdicts: Sequence[Row], contexts: int) -> dict[str, Any]:
    """Return the passages of each label; where the cited ones do not support the claim, the others that do."""
    cited = {index for named in citations.values() for index in named}
    supporting = [set(_indices(row["premise"], contexts)) for row in verdicts if row["verdict"] == 1]
    is_supported = any(found and found <= cited for found in supporting)
    alone = [row for row in verdicts if len(_indices(row["premise"], contexts)) == 1 and row["verdict"] is not None]
    is_judged = not cited or {index for row in alone for index in _indices(row["premise"], contexts)} >= cited
    elsewhere = sorted({index for found in supporting if len(found) == 1 for index in found} - cited)
    return {
        "labels": [{"label": label, "passages": list(named)} for label, named in citations.items()],
        **({"instead": elsewhere} if is_judged and not is_supported and elsewhere else {}),
    }


def _indices(premise: str, contexts: int) -> tuple[int, ...]:
    return tuple(range(contexts)) if premise == ALL_CONTEXTS else contexts_of(premise)
