"""The stage `claims`: every text decomposed once, and every text without claims accounted for."""

from pathlib import Path
from typing import Any

import pytest

from metric_core import reasons
from metric_core.evidence_spans import EvidenceSpan, PlacedSpan, SpanState
from metric_core.stages import Product, Stage
from tasks.options.judge_options import JudgeSettings
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
        ("row-4", None, None, reasons.empty_column("user_input")),
    ]


WRITTEN = {"key_points": [{"text": "At nine.", "importance": "vital"}, {"text": "It has tea.", "importance": "okay"}]}
SHOP = {"user_input": "When?", "response": "At nine."}


def points_of(judge: Any, *rows: dict[str, Any], **options: Any) -> list[tuple[Any, ...]]:
    settings = ClaimsSettings(products=(Product.KEY_POINTS,), judge=judge, **options)
    output = run_stage(claims, {Stage.SAMPLES: samples_table(*rows)}, settings)
    return sorted(cells(output.table, "row_id", "text", "importance", "status", "reason"), key=str)


def test_key_points_are_written_from_the_relevant_passages_where_nothing_else_is_given(tmp_path: Path) -> None:
    judge = script(
        tmp_path,
        says("passage_relevance", "The shop opens at nine.", answer="2"),
        says("passage_relevance", "The shop has tea.", answer="3"),
        says("passage_relevance", "Delft has canals.", answer="1"),
        says("key_point_writing", "The shop has tea.\nThe shop opens at nine.", answer=WRITTEN),
        says("key_point_writing", "Delft has canals.", answer={"key_points": []}),
    )
    passages = ["The shop opens at nine.", "Delft has canals.", "The shop has tea.", " ", "The shop has tea."]
    binary = {"retrieved_context_ids": ["b", "b"], "relevance_judgments": [{"id": "b", "grade": 1.0}]}
    written = [("At nine.", "vital", "answered", None), ("It has tea.", "okay", "answered", None)]
    nothing = (None, None, "undefined", reasons.NO_RELEVANT_PASSAGE)
    assert points_of(
        judge,
        {**SHOP, "retrieved_contexts": passages},
        {**SHOP, "retrieved_contexts": passages[::-1], "reference": " "},
        {**SHOP, "retrieved_contexts": ["Delft has canals."]},
        {**SHOP, "retrieved_contexts": ["Delft has canals."], "reference_contexts": [passages[2], passages[0]]},
        {**SHOP, "retrieved_contexts": ["Delft has canals."] * 2, **binary},
        SHOP,
    ) == [
        *(("row-1", *row) for row in written),
        *(("row-2", *row) for row in written),
        ("row-3", *nothing),
        *(("row-4", *row) for row in written),
        ("row-5", None, None, "undefined", reasons.NO_KEY_POINTS),
        ("row-6", *nothing),
    ]


def test_key_points_are_written_from_judged_texts_however_the_passages_are_cut(tmp_path: Path) -> None:
    judge = script(tmp_path, says("key_point_writing", "It opens at nine.\nIt sells tea.", answer=WRITTEN))
    judged = (("It sells tea.", "lost", 3.0), ("It opens at nine.", "carried", 2.0), ("It is red.", "carried", 1.0))
    spans = [PlacedSpan(EvidenceSpan(text, grade=grade), SpanState(state)).to_json() for text, state, grade in judged]
    spans.append(PlacedSpan(EvidenceSpan("It opens at ten.", grade=3.0), SpanState.EDITED).to_json())
    cuts = (["Delft has canals. It opens", "at nine."], ["Delft has canals.", "It opens at nine."])
    found = points_of(judge, *({**SHOP, "retrieved_contexts": cut, "evidence_spans": spans} for cut in cuts))
    assert [each[:2] for each in found] == [
        (f"row-{row}", text) for row in (1, 2) for text in ("At nine.", "It has tea.")
    ]


def test_key_points_whose_evidence_was_edited_are_left_out(tmp_path: Path) -> None:
    points = [{"text": str(state), "importance": "vital"} for state in SpanState]
    evidence = [[PlacedSpan(EvidenceSpan("It rains."), state).to_json()] for state in SpanState]
    place = list(SpanState).index(SpanState.EDITED)
    row = {**SHOP, "key_points": points, "point_evidence": evidence}
    edited = {**SHOP, "key_points": points[place : place + 1], "point_evidence": evidence[place : place + 1]}
    found = points_of(script(tmp_path), row, edited)
    assert [each[1] for each in found] == ["carried", "lost", "uncertain", "unseen", None]
    assert found[-1] == ("row-2", None, None, "undefined", reasons.NO_KEY_POINTS)


def test_key_points_are_written_beside_a_reference_if_an_option_says_so(tmp_path: Path) -> None:
    judge = script(
        tmp_path,
        says("claims", "At ten.", answer={"claims": ["It opens at ten."]}),
        says("passage_relevance", "The shop opens at nine.", answer="3"),
        says("key_point_writing", "User: Hi!\nUser: When?", answer=WRITTEN),
    )
    row = {
        **SHOP,
        "reference": "At ten.",
        "retrieved_contexts": ["The shop opens at nine."],
        "earlier_turns": "User: Hi!",
    }
    given = {**row, "key_points": [{"text": "At eight.", "importance": "okay"}]}
    assert points_of(judge, row) == [("row-1", "It opens at ten.", None, "answered", None)]
    found = points_of(judge, row, given, write_key_points=True)
    assert [each[:3] for each in found] == [
        ("row-1", "At nine.", "vital"),
        ("row-1", "It has tea.", "okay"),
        ("row-2", "At eight.", "okay"),
    ]


@pytest.mark.models
def test_key_points_are_not_written_without_usable_grades(tmp_path: Path) -> None:
    row = {**SHOP, "retrieved_contexts": ["The shop opens at nine."]}
    failed = points_of(script(tmp_path, fails("passage_relevance")), row)
    assert [each[3:] for each in failed] == [("failed", "the reply was cut off")]
    packaged = points_of(JudgeSettings(), row)
    assert [each[3:] for each in packaged] == [("undefined", reasons.NEEDS_LANGUAGE_MODEL)]
