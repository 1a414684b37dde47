"""Claims on the page say what they cite, and which passage supports them instead."""

from typing import Any

import pytest

from tasks.reports.run.citations_view import citations_view

SAMPLE = {"retrieved_contexts": ["a", "b", "c"], "retrieved_context_ids": ["x#1", "x#2", "y"]}


def claim(*labels: str) -> dict[str, Any]:
    return {"claim_id": "response:0", "citations": list(labels)}


def view(labels: tuple[str, ...], verdicts: dict[str, int | None]) -> Any:
    rows = [{"premise": premise, "verdict": verdict} for premise, verdict in verdicts.items()]
    return citations_view(SAMPLE, [claim(*labels)], {"response:0": rows})["response:0"]


def test_labels_lead_to_passages() -> None:
    assert view(("1", "y", "9"), {"context:0": 1}) == {
        "labels": [
            {"label": "1", "passages": [0]},
            {"label": "y", "passages": [2]},
            {"label": "9", "passages": []},
        ]
    }


@pytest.mark.parametrize(
    ("labels", "verdicts", "instead"),
    [
        (("2",), {"context:1": 0, "context:0": 1, "context:2": 0}, [0]),
        (("9",), {"context:0": 1, "context:2": 1}, [0, 2]),
        (("2",), {"context:1": None, "context:0": 1}, None),
        (("2",), {"context:0": 1}, None),
        (("1", "2"), {"context:0": 0, "context:1": 0, "contexts:0,1": 1, "context:2": 1}, None),
        (("1", "2"), {"context:0": 0, "context:1": 0, "contexts:0,1": 0, "context:2": 1}, [2]),
        (("1", "2", "3"), {"context:0": 0, "context:1": 0, "context:2": 0, "contexts": 1}, None),
    ],
)
def test_a_claim_that_another_passage_supports_says_which(
    labels: tuple[str, ...], verdicts: dict[str, int | None], instead: list[int] | None
) -> None:
    assert view(labels, verdicts).get("instead") == instead


def test_claims_without_citations_say_nothing() -> None:
    assert citations_view(SAMPLE, [claim(), {"claim_id": "response:1", "citations": None}], {}) == {}
