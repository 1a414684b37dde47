"""The stage `claims`: every text decomposed once, and every text without claims accounted for."""

from pathlib import Path

import pytest

from metric_core import reasons
from metric_core.stages import Product, Stage
from tasks.stages.claims import ClaimsSettings, claims
from tests.tasks.builders import cells, fails, run_stage, samples_table, says, script


def test_claims_are_numbered_by_side(tmp_path: Path) -> None:
    judge = script(
        tmp_path,
        says("claims", "A and B.", answer={"claims": ["A.", " ", "B."]}),
        says("claims", "C.", answer={"claims": ["C."]}),
    )
    settings = ClaimsSettings(products=(Product.RESPONSE_CLAIMS, Product.REFERENCE_CLAIMS), judge=judge)
    output = run_stage(claims, {Stage.SAMPLES: samples_table({"response": "A and B.", "reference": "C."})}, settings)
    assert cells(output.table, "row_id", "side", "claim_id", "text") == [
        ("row-1", "response", "response:0", "A."),
        ("row-1", "response", "response:1", "B."),
        ("row-1", "reference", "reference:0", "C."),
    ]


def test_text_without_claims_blank_text_and_failed_reply_differ(tmp_path: Path) -> None:
    judge = script(
        tmp_path, says("claims", "Hello!", answer={"claims": []}), fails("claims", "Long.", reason="cut off")
    )
    table = samples_table({"response": "Hello!"}, {"response": " \n"}, {"response": "Long."})
    settings = ClaimsSettings(products=(Product.RESPONSE_CLAIMS,), judge=judge)
    output = run_stage(claims, {Stage.SAMPLES: table}, settings)
    assert cells(output.table, "row_id", "claim_id", "status", "reason") == [
        ("row-1", None, "undefined", reasons.NO_RESPONSE_CLAIMS),
        ("row-2", None, "undefined", reasons.empty_column("response")),
        ("row-3", None, "failed", "cut off"),
    ]
    assert output.usage.failed == {"cut off": 1}


def test_equal_responses_to_equal_questions_are_asked_once(tmp_path: Path) -> None:
    judge = script(tmp_path, says("claims", "A.", answer={"claims": ["A."]}))
    table = samples_table(*[{"user_input": "Q?", "response": "A."}] * 3)
    output = run_stage(claims, {Stage.SAMPLES: table}, ClaimsSettings(products=(Product.RESPONSE_CLAIMS,), judge=judge))
    assert output.table.num_rows == 3
    assert output.usage.questions == 1


@pytest.mark.models
def test_sentences_need_no_judge_and_are_numbered_by_context(tmp_path: Path) -> None:
    table = samples_table(
        {"reference": "Dogs bark. Cats meow.", "retrieved_contexts": ["One thing. Another thing.", "A third thing."]},
        {"reference": "", "retrieved_contexts": []},
    )
    settings = ClaimsSettings(products=(Product.REFERENCE_SENTENCES, Product.CONTEXT_SENTENCES), judge=script(tmp_path))
    output = run_stage(claims, {Stage.SAMPLES: table}, settings)
    assert cells(output.table, "claim_id", "text", "reason") == [
        ("reference_sentence:0", "Dogs bark.", None),
        ("reference_sentence:1", "Cats meow.", None),
        (None, None, reasons.NO_REFERENCE_SENTENCES),
        ("context_sentence:0:0", "One thing.", None),
        ("context_sentence:0:1", "Another thing.", None),
        ("context_sentence:1:0", "A third thing.", None),
        (None, None, reasons.NO_CONTEXTS),
    ]
    assert output.usage.questions == 0


@pytest.mark.models
def test_claims_know_their_place_and_markers_are_not_judged(tmp_path: Path) -> None:
    response = "It rains in Cork [1] and it snows in Oslo [doc-2]. Take care [3]."
    asked = "It rains in Cork and it snows in Oslo. Take care."
    found = ["It rains in Cork.", "In Oslo there is snow, it snows.", "Take care [3].", "Rome is old."]
    judge = script(tmp_path, says("claims", asked, answer={"claims": found}))
    table = samples_table({"response": response})
    output = run_stage(claims, {Stage.SAMPLES: table}, ClaimsSettings(products=(Product.RESPONSE_CLAIMS,), judge=judge))
    placed = [
        (text, None if start is None else response[start:end], sentence, cited)
        for text, start, end, sentence, cited in cells(output.table, "text", "start", "end", "sentence", "citations")
    ]
    whole = "It rains in Cork [1] and it snows in Oslo [doc-2]."
    assert placed == [
        ("It rains in Cork.", "It rains in Cork", 0, ["1"]),
        ("In Oslo there is snow, it snows.", whole, 0, ["1", "doc-2"]),
        ("Take care.", "Take care", 1, ["3"]),
        ("Rome is old.", None, None, None),
    ]


@pytest.mark.models
def test_intervals_are_judged_and_references_are_not(tmp_path: Path) -> None:
    response = "It rains (see [1] and [3]). All scores lie in [0, 1].\n\nReferences:\n1. Weather\n2. Climate"
    asked = "It rains. All scores lie in [0, 1].\n\n"
    found = ["It rains.", "All scores lie in [0, 1]."]
    judge = script(tmp_path, says("claims", asked, answer={"claims": found}))
    table = samples_table({"response": response, "retrieved_contexts": ["a", "b", "c"]})
    settings = ClaimsSettings(products=(Product.RESPONSE_CLAIMS, Product.RESPONSE_SENTENCES), judge=judge)
    output = run_stage(claims, {Stage.SAMPLES: table}, settings)
    cited = [(text, labels) for text, labels in cells(output.table, "text", "citations")]
    assert cited == [(found[0], ["1", "3"]), (found[1], [])] * 2


@pytest.mark.models
def test_ids_of_contexts_are_markers_and_sentences_have_places(tmp_path: Path) -> None:
    response = "Rain falls. [kb/intro] Snow [sic] melts."
    table = samples_table({"response": response, "retrieved_context_ids": ["kb/intro"]}, {"response": " "})
    settings = ClaimsSettings(products=(Product.RESPONSE_SENTENCES,), judge=script(tmp_path))
    output = run_stage(claims, {Stage.SAMPLES: table}, settings)
    assert cells(output.table, "claim_id", "text", "sentence", "citations", "reason") == [
        ("response_sentence:0", "Rain falls.", 0, ["kb/intro"], None),
        ("response_sentence:1", "Snow [sic] melts.", 1, [], None),
        (None, None, None, None, reasons.NO_RESPONSE_SENTENCES),
    ]


def test_every_reference_context_has_claims(tmp_path: Path) -> None:
    judge = script(
        tmp_path,
        says("claims", "One.", answer={"claims": ["One is one.", "One is odd."]}),
        says("claims", "Two.", answer={"claims": ["Two is even."]}),
    )
    table = samples_table({"user_input": "Q?", "reference_contexts": ["One.", " ", "Two."]}, {"reference_contexts": []})
    settings = ClaimsSettings(products=(Product.REFERENCE_CONTEXT_CLAIMS,), judge=judge)
    output = run_stage(claims, {Stage.SAMPLES: table}, settings)
    assert cells(output.table, "claim_id", "text", "reason") == [
        ("reference_context:0:0", "One is one.", None),
        ("reference_context:0:1", "One is odd.", None),
        (None, None, reasons.empty_column("reference_contexts")),
        ("reference_context:2:0", "Two is even.", None),
        (None, None, reasons.NO_REFERENCE_CONTEXTS),
    ]


def test_key_points_are_given_or_else_the_claims_of_the_reference(tmp_path: Path) -> None:
    judge = script(tmp_path, says("claims", "It opens at nine.", answer={"claims": ["The shop opens at nine."]}))
    given = [{"text": "It is in Delft.", "importance": "vital"}, {"text": "It sells tea.", "importance": "okay"}]
    table = samples_table(
        {"reference": "Not read.", "key_points": given},
        {"reference": "It opens at nine."},
        {"reference": "Not read.", "key_points": []},
        {"reference": " "},
    )
    output = run_stage(claims, {Stage.SAMPLES: table}, ClaimsSettings(products=(Product.KEY_POINTS,), judge=judge))
    found = sorted(cells(output.table, "row_id", "claim_id", "text", "reason"), key=str)
    assert found == [
        ("row-1", "key_point:0", "It is in Delft.", None),
        ("row-1", "key_point:1", "It sells tea.", None),
        ("row-2", "key_point:0", "The shop opens at nine.", None),
        ("row-3", None, None, reasons.NO_KEY_POINTS),
        ("row-4", None, None, reasons.NO_KEY_POINTS),
    ]
