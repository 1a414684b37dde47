"""The anchor in a report and on a terminal."""

from typing import Any

import pytest

from tasks.findings.anchor.anchor_record import AnchorRecord
from tasks.findings.anchor.anchor_view import anchor_line, anchor_view
from tests.run_records import anchor_json


def anchor_of(**more: Any) -> AnchorRecord:
    """Return an anchor of one metric."""
    means = {"mean": 0.5, "low": 0.4, "high": 0.6, "scored": 68, "undefined": 1, "failed": 0}
    anchor = {
        "source": "data/anchor.jsonl",
        "folder": "anchor",
        "rows": 69,
        "usage": {"questions": 40, "asked": 0},
        "metrics": {"faithfulness": means},
        "left_out": {},
        "agreement": {},
    }
    return AnchorRecord.model_validate(anchor_json(**anchor | more))


def agreement_with(**more: Any) -> dict[str, Any]:
    """Return the agreement of a judge with 69 labels."""
    return {"agreement": {"faithfulness": {"label": "faithful", "compared": 69, "figures": {}, **more}}}


CHANGED = {"sentence": "the judge qwen answers otherwise"}
AGAIN = {
    "rows": 23,
    "questions": 70,
    "judges": [
        {"judge": "llama", "change": None, "changed": [], "distances": {"a": 0.0, "b": 0.1}},
        {"judge": "qwen", "change": CHANGED, "changed": ["a"], "distances": {"a": 1.0}, "has_returned": False},
    ],
}
FIGURE = {"value": 0.61, "low": 0.4, "high": 0.8}


@pytest.mark.parametrize(
    ("more", "line"),
    [
        ({}, "anchor: 69 rows of anchor.jsonl. All 40 answers were cached."),
        (
            {"usage": {"questions": 40, "asked": 40}, "rows": 1},
            "anchor: 1 row of anchor.jsonl. All 40 questions were asked: this judge had not seen the anchor.",
        ),
        ({"usage": {"questions": 0, "asked": 0}}, "anchor: 69 rows of anchor.jsonl."),
        (
            agreement_with(figures={"kappa": FIGURE}),
            (
                "anchor: 69 rows of anchor.jsonl. All 40 answers were cached. Agreement with its labels: faithfulness: "
                "Cohen's kappa 0.610 (0.400 to 0.800), 69 rows."
            ),
        ),
        (
            agreement_with(),
            (
                "anchor: 69 rows of anchor.jsonl. All 40 answers were cached. Agreement with its labels: faithfulness: "
                "not determined by 69 rows."
            ),
        ),
        (
            {"asked_again": AGAIN},
            (
                "anchor: 69 rows of anchor.jsonl. All 40 answers were cached. 70 questions about 23 rows were asked "
                "again: llama gave none of 2 rows another verdict, qwen gave 1 of 1 rows another verdict. The judge "
                "qwen answers otherwise."
            ),
        ),
        (
            {"asked_again": {"reason": "it is down", "judges": [{"judge": "qwen", "change": CHANGED}]}},
            (
                "anchor: 69 rows of anchor.jsonl. All 40 answers were cached. Nothing could be asked again: it is "
                "down. The judge qwen answers otherwise."
            ),
        ),
        ({"reason": "the judge is lost"}, "anchor: no scores of anchor.jsonl"),
    ],
)
def test_a_line_says_what_the_anchor_cost_and_how_its_labels_agree(more: dict[str, Any], line: str) -> None:
    assert anchor_line(anchor_of(**more)) == line


def test_labels_that_cannot_be_used_say_why() -> None:
    view = anchor_view(anchor_of(**agreement_with(reason="all 69 labels are the same")))

    assert view is not None
    assert view["metrics"][0]["agreement"] == "all 69 labels are the same"


def test_a_run_without_an_anchor_has_none() -> None:
    assert anchor_view(None) is None
    assert anchor_line(None) is None
