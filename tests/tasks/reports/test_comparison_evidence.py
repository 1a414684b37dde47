"""The evidence of a row in two runs: every side of claims and every premise has a name."""

from typing import Any

import pytest

from metric_core.records import STATEMENT
from tasks.reports.comparison.comparison_evidence import evidence_groups
from tasks.reports.run import claims_view

EMPTY: dict[str, Any] = {"questions": None, "entities": None, "passages": [], "similarities": [], "ratings": []}


def view(side: str, **verdict: Any) -> dict[str, Any]:
    claim = {"text": {"text": "It rains."}, "passages": [], "verdicts": [{"verdict": 1, **verdict}] if verdict else []}
    return {**EMPTY, "claims": [{"side": side, "gap": None, "claims": [claim]}]}


def test_claims_of_every_side_are_compared() -> None:
    for side in (*claims_view._SIDES, STATEMENT):
        (group,) = evidence_groups(view(side), view(side))
        assert group["is_same"], side


@pytest.mark.parametrize(
    ("verdict", "words"),
    [
        ({"premise": "contexts"}, "supported by the passages"),
        ({"premise": "contexts:0,2"}, "supported by passages 1, 3 together"),
        ({"premise": "text:0f", "premise_text": {"text": "Rain."}}, "supported by “Rain.”"),
    ],
)
def test_every_premise_has_a_name(verdict: dict[str, Any], words: str) -> None:
    (group,) = evidence_groups(view("response"), view("response", **verdict))
    assert [note["words"] for item in group["b"] for note in item["notes"]] == [words]
