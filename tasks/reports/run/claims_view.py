"""Describe the claims of a row for a page: each with its verdicts and the closest sentence in the passages."""

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from metric_core.evidence import ALL_CONTEXTS, BY_EARLIER_ANSWERS, BY_REFERENCE, BY_RESPONSE, SOURCES
from metric_core.evidence_spans import PlacedSpan, SpanState
from metric_core.records import PREMISE_TEXT, STATEMENT, AnswerStatus, Importance, Side, VerdictKind
from metric_core.stages import Stage
from tasks.reports.run.citations_view import citations_view
from tasks.reports.run.conversation_view import named_sources
from tasks.reports.run.passages import Closest, Segments, SentenceIndex, segment
from tasks.reports.run.row_tables import RowTables
from tasks.reports.run.verdict_view import Explanations, explanations_by_verdict, verdict_view
from tasks.reports.truncation import Row, gap_view, truncate_reply, truncate_text
from tasks.runtime.wording import quote_names

_WHOLE_PREMISES = (ALL_CONTEXTS, SOURCES, BY_EARLIER_ANSWERS, BY_REFERENCE, BY_RESPONSE)
_LOST = {
    1: "the passages have it, the generator left it out",
    0: "the passages do not have it, the index did not find it",
    None: "whether the passages have it is unknown",
}
_SIDES = (
    Side.RESPONSE,
    Side.RESPONSE_SENTENCE,
    Side.REFERENCE,
    Side.REFERENCE_CONTEXT,
    Side.REFERENCE_SENTENCE,
    Side.KEY_POINT,
)


def claims_view(tables: RowTables, passages: Sequence[Segments]) -> list[dict[str, Any]]:
    """Return the claims of each side that has claims, or a reason for having none."""
    explanations = explanations_by_verdict(tables.rows(Stage.EXPLANATIONS))
    verdicts: dict[str, list[Row]] = {}
    partly: set[tuple[str, str]] = set()
    for row in tables.rows(Stage.VERDICTS):
        if row["kind"] in (VerdictKind.SUPPORT, VerdictKind.FULL_SUPPORT):
            verdicts.setdefault(row["claim_id"], []).append(row)
        elif row["kind"] == VerdictKind.PARTIAL_SUPPORT and row["verdict"]:
            partly.add((row["claim_id"], row["premise"]))
    by_side: dict[str, list[Row]] = {
        side: [row for row in tables.rows(Stage.CLAIMS) if row["side"] == side] for side in _SIDES
    }
    by_side[STATEMENT] = _statements(tables.rows(Stage.VERDICTS))
    claims = [row["text"] for rows in by_side.values() for row in rows if row["claim_id"] is not None]
    index = SentenceIndex(passages, claims)
    sources = named_sources(tables.sample)
    elsewhere = SentenceIndex([segment(text) for _, text in sources], claims)
    of_response = [*by_side[Side.RESPONSE], *by_side[Side.RESPONSE_SENTENCE]]
    cited = citations_view(tables.sample, of_response, verdicts)
    return [
        {
            "side": side,
            "gap": gap_view(rows),
            "reply": truncate_reply(rows),
            "claims": [
                _claim(row, verdicts.get(row["claim_id"], ()), index, explanations, partly)
                | _source(row, verdicts.get(row["claim_id"], ()), elsewhere, [name for name, _ in sources])
                | _cited(row, cited)
                | _key_point(row, verdicts.get(row["claim_id"], ()), tables.sample, partly)
                for row in rows
                if row["claim_id"] is not None
            ],
        }
        for side, rows in by_side.items()
        if rows
    ]


def _statements(verdicts: Sequence[Row]) -> list[Row]:
    """Return the statements that metrics requested verdicts on, as rows of claims."""
    statements = {row["claim_id"]: row["statement"] for row in verdicts if row.get("statement") is not None}
    answered = {"status": AnswerStatus.ANSWERED, "reason": None, "reply": None}
    return [{"claim_id": claim_id, "text": text, **answered} for claim_id, text in statements.items()]


def find_passage(address: str) -> int:
    """Return the index of the passage in a premise or in the id of a context sentence.

    >>> find_passage("context:2"), find_passage("context_sentence:0:7")
    (2, 0)
    """
    return int(address.split(":")[1])


def _claim(
    row: Row,
    verdicts: Sequence[Row],
    index: SentenceIndex,
    explanations: Explanations,
    partly: Collection[tuple[str, str]],
) -> dict[str, Any]:
    closest = index.closest_of_each(row["text"])
    by_premise = {
        verdict["premise"]: {
            "premise": verdict["premise"],
            **({"premise_text": truncate_text(verdict["premise_text"])} if verdict.get("premise_text") else {}),
            **verdict_view(verdict, explanations),
            **({"partly": True} if (row["claim_id"], verdict["premise"]) in partly else {}),
        }
        for verdict in verdicts
    }
    by_passage = {
        find_passage(premise): verdict for premise, verdict in by_premise.items() if premise.startswith("context:")
    }
    others = [premise for premise in by_premise if premise.startswith((f"{PREMISE_TEXT}:", f"{ALL_CONTEXTS}:"))]
    return {
        "text": truncate_text(row["text"]),
        "verdicts": [by_premise[premise] for premise in (*_WHOLE_PREMISES, *others) if premise in by_premise],
        "passages": [
            {**verdict, "premise": passage, "piece": closest[passage].piece if passage in closest else None}
            for passage, verdict in sorted(by_passage.items())
        ],
        "closest": _place(index.closest_of(closest)),
    }


def _source(row: Row, verdicts: Sequence[Row], elsewhere: SentenceIndex, names: Sequence[str]) -> dict[str, str]:
    """Return the name of the source beside the row's own passages that resembles a claim most, if one does."""
    is_judged_by_sources = any(verdict["premise"] == SOURCES for verdict in verdicts)
    closest = elsewhere.closest(row["text"]) if is_judged_by_sources else None
    return {} if closest is None else {"source": names[closest.passage]}


def _cited(row: Row, cited: Mapping[str, Any]) -> dict[str, Any]:
    return {"citations": cited[row["claim_id"]]} if row["claim_id"] in cited else {}


def _key_point(row: Row, verdicts: Sequence[Row], sample: Row, partly: Collection[tuple[str, str]]) -> dict[str, str]:
    """Return the importance of a key point that is not vital, and where the point was lost if the response lacks it."""
    if row.get("side") != Side.KEY_POINT:
        return {}
    view: dict[str, str] = {}
    if (importance := row.get("importance")) not in (None, Importance.VITAL):
        view["importance"] = importance
    found = {verdict["premise"]: verdict["verdict"] for verdict in verdicts}
    if found.get(BY_RESPONSE) == 0:
        in_contexts = 0 if sample["retrieved_contexts"] == [] else found.get(ALL_CONTEXTS)
        is_partly = (row["claim_id"], BY_RESPONSE) in partly
        where = _LOST[in_contexts] if in_contexts != 0 else f"{_LOST[0]}{_evidence(row['claim_id'], sample)}"
        view["lost"] = f"{'stated only in part' if is_partly else 'missing'}: {where}"
    return view


def _evidence(claim_id: str, sample: Row) -> str:
    """Return where the index holds the evidence of a key point that no passage has; empty if none is given."""
    evidence = sample.get("point_evidence")
    spans = [PlacedSpan.from_json(each) for each in evidence[int(claim_id.split(":")[1])]] if evidence else []
    if any(span.state is SpanState.LOST for span in spans):
        return " (its evidence is gone)"
    holders = dict.fromkeys(part.passage for span in spans for part in span.parts)
    return f" (it is in {quote_names(list(holders))})" if holders else ""


def _place(closest: Closest | None) -> dict[str, int] | None:
    if closest is None:
        return None
    return {"passage": closest.passage, "piece": closest.piece, "shared": closest.shared, "words": closest.words}
