"""The stage `languages`: the language of each row, and what is certainly in another one than expected."""

from typing import Any

from metric_core.stages import Stage
from tasks.rows.records import build_table
from tasks.stages.languages import LanguagesSettings, languages
from tests.tasks.builders import run_stage, samples_table

GERMAN = "Die Fahrräder werden in der Werkstatt am Bahnhof repariert, und die Reparatur dauert bis zum Abend."
ENGLISH = "The bicycles are repaired in the workshop at the station, and a repair takes two days."
SPANISH = "¿Dónde se reparan las bicicletas en la ciudad, y cuánto tiempo tarda la reparación?"


def detect(*rows: dict[str, Any], **tables: list[dict[str, Any]]) -> list[tuple[str, list[tuple[str, ...]]]]:
    """Return the language of each row, and what is in another one."""
    given = {Stage.SAMPLES: samples_table(*rows)}
    given |= {(stage := Stage(name)): build_table(stage, found) for name, found in tables.items()}
    table = run_stage(languages, given, LanguagesSettings()).table
    assert table["row_id"].to_pylist() == given[Stage.SAMPLES]["row_id"].to_pylist()
    return [(row["language"], [tuple(each.values()) for each in row["others"]]) for row in table.to_pylist()]


def claim(row_id: str, text: str, **changes: str) -> dict[str, Any]:
    return {"row_id": row_id, "side": "response", "claim_id": text, "text": text, "status": "answered", **changes}


def test_the_texts_of_a_row_have_one_language_together() -> None:
    assert detect(
        {"user_input": "Wo?", "response": GERMAN},
        {"user_input": ENGLISH, "reference": ENGLISH},
        {"user_input": "42", "response": None},
    ) == [("de", []), ("en", []), ("und", [])]


def test_a_response_is_compared_with_its_question_and_what_restates_it_with_the_response() -> None:
    rows = [{"user_input": SPANISH, "response": GERMAN}, {"user_input": GERMAN, "response": GERMAN}]
    found = detect(
        *rows,
        claims=[
            claim("row-1", ENGLISH),
            claim("row-2", ENGLISH, side="reference"),
            claim("row-2", ENGLISH, side="response", status="failed"),
            claim("row-2", GERMAN),
        ],
        questions=[{"row_id": "row-2", "k": 0, "text": ENGLISH, "noncommittal": False, "status": "answered"}],
    )
    assert [others for _, others in found] == [
        [("response", "de", "es"), ("claims", "en", "de")],
        [("questions", "en", "de")],
    ]


def test_a_question_that_follows_others_is_the_self_contained_one() -> None:
    row = {"user_input": SPANISH, "response": GERMAN, "earlier_turns": "User: ¿Dónde?"}
    asked = [{"row_id": "row-1", "question": GERMAN, "status": "answered"}]
    assert detect(row, follow_ups=asked) == [("de", [])]
    unasked = [{"row_id": "row-1", "question": None, "status": "failed", "reason": "cut off"}]
    assert [others for _, others in detect(row, follow_ups=unasked)] == [[("response", "de", "es")]]


def test_nothing_is_compared_with_a_response_whose_language_is_not_clear() -> None:
    row = {"user_input": SPANISH, "response": "42"}
    assert [others for _, others in detect(row, claims=[claim("row-1", ENGLISH)])] == [[]]
