"""Describe the evidence of a row in two runs, side by side."""

from collections.abc import Iterator, Mapping
from typing import Any

from metric_core.joint_contexts import contexts_of
from tasks.documents.figures import format_fixed

View = Mapping[str, Any]

_SIDES = {
    "response": "Claims of the answer",
    "response_sentence": "Sentences of the answer",
    "reference": "Claims of the reference",
    "reference_context": "Claims of the reference contexts",
    "reference_sentence": "Sentences of the reference",
    "key_point": "Key points",
    "statement": "Statements of metrics",
}
_PREMISES = {
    "contexts": "the passages",
    "sources": "the passages and results of tools so far",
    "earlier_answers": "an earlier answer",
    "reference": "the reference",
    "response": "the answer",
}
_SIGNS = {1: ("yes", "✓"), 0: ("no", "✗"), None: ("open", "?")}


def evidence_groups(a: View, b: View) -> list[dict[str, Any]]:
    """Return the evidence of both runs, one group per kind of evidence that either run has.

    Args:
        a: Evidence of the row in the first run, from `row_view`.
        b: Evidence of the row in the second run.
    """
    before, after = dict(_groups(a)), dict(_groups(b))
    return [
        {
            "title": title,
            "a": before.get(title, []),
            "b": after.get(title, []),
            "is_same": before.get(title, []) == after.get(title, []),
        }
        for title in dict.fromkeys([*after, *before])
    ]


def _groups(view: View) -> Iterator[tuple[str, list[dict[str, Any]]]]:
    for side in view["claims"]:
        items = [_claim(claim) for claim in side["claims"]]
        yield _SIDES[side["side"]], items or [_gap(side["gap"])]
    if view["questions"] is not None:
        asked = [_question(question) for question in view["questions"]["questions"]]
        yield "Questions that the answer would answer", asked or [_gap(view["questions"]["gap"])]
    if view["entities"] is not None:
        named = [_entity(entity) for entity in view["entities"]["entities"]]
        yield "Entities of the reference", named or [_gap(view["entities"]["gap"])]
    useful = [_useful(passage, i) for i, passage in enumerate(view["passages"], start=1) if passage["useful"]]
    if useful:
        yield "Usefulness of the passages", useful
    if view["similarities"]:
        yield "Similarity of answer and reference", [_similarity(item) for item in view["similarities"]]
    if view["ratings"]:
        yield "Ratings", [_rating(rating, vote) for rating in view["ratings"] for vote in rating["votes"]]


def _item(text: str | None, notes: list[dict[str, str]] | None = None, more: str | None = None) -> dict[str, Any]:
    return {"text": text or "", "notes": notes or [], "more": more}


def _gap(gap: View | None) -> dict[str, Any]:
    return _item(None, [_note("open", "", f"{gap['status']}: {gap['reason']}" if gap else "none")])


def _note(kind: str, sign: str, words: str) -> dict[str, str]:
    return {"kind": kind, "sign": sign, "words": words}


def _verdict_note(verdict: View, yes: str, no: str) -> dict[str, str]:
    kind, sign = _SIGNS[verdict.get("verdict")]
    words = {"yes": yes, "no": no}.get(kind, f"no verdict: {verdict.get('reason') or 'no reason given'}")
    probability = verdict.get("probability")
    return _note(kind, sign, words if probability is None else f"{words} ({probability:.2f})")


def _claim(claim: View) -> dict[str, Any]:
    notes = [
        _verdict_note(verdict, f"supported {_only(verdict)}by {name}", f"not supported by {name}")
        for verdict in claim["verdicts"]
        for name in (_name_premise(verdict),)
    ]
    notes += [
        _verdict_note(verdict, f"by passage {number}", f"not by passage {number}")
        for verdict in claim["passages"]
        for number in (verdict["premise"] + 1,)
    ]
    explained = [verdict["why"]["text"] for verdict in claim["verdicts"] if verdict.get("why")]
    return _item(_words(claim["text"]), notes, " ".join(explained) or None)


def _name_premise(verdict: View) -> str:
    """Return the name of a premise: a whole text of the row, some passages together, or a text of a metric."""
    premise = verdict["premise"]
    if premise in _PREMISES:
        return _PREMISES[premise]
    if "premise_text" in verdict:
        return f"“{_words(verdict['premise_text'])}”"
    return f"passages {', '.join(str(index + 1) for index in contexts_of(premise))} together"


def _only(verdict: View) -> str:
    """Return "only " for what no source supports: earlier answers are asked about nothing else."""
    return "only " if verdict["premise"] == "earlier_answers" else ""


def _question(question: View) -> dict[str, Any]:
    cosine = question["cosine"]
    notes = [_note("open", "", "no cosine" if cosine is None else f"cosine {format_fixed(cosine)}")]
    if question["noncommittal"]:
        notes.append(_note("no", "!", "noncommittal answer"))
    return _item(_words(question["text"]), notes)


def _entity(entity: View) -> dict[str, Any]:
    passages = ", ".join(str(i + 1) for i in entity["passages"])
    note = _note("yes", "✓", f"in passage {passages}") if passages else _note("no", "✗", "in no passage")
    return _item(_words(entity["text"]), [note])


def _useful(passage: View, number: int) -> dict[str, Any]:
    texts = {True: "the reference", False: "the answer"}
    named = [(verdict, texts[verdict["for"].endswith("reference")]) for verdict in passage["useful"]]
    notes = [_verdict_note(verdict, f"useful for {text}", f"not useful for {text}") for verdict, text in named]
    return _item(f"Passage {number}", notes)


def _similarity(item: View) -> dict[str, Any]:
    value = str(item["reason"]) if item["value"] is None else format_fixed(item["value"])
    return _item("", [_note("open", "", f"{str(item['pair']).replace('_', ' ')}: {value}")])


def _rating(rating: View, vote: View) -> dict[str, Any]:
    note = f"{vote['status']}: {vote['reason']}" if vote["value"] is None else f"rated {vote['value']}"
    return _item(f"{rating['metric']}, {rating['template']}", [_note("open", "", note)], _words(vote["feedback"]))


def _words(text: View | None) -> str | None:
    return None if text is None else text["text"]
