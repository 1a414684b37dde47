"""The stage `verdicts`: one verdict per claim and premise, and only verdicts that a score depends on."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa

from metric_core.records import Side
from metric_core.stages import Product, Stage
from tasks.options.judge_options import JudgeSettings
from tasks.rows.records import build_table
from tasks.stages.verdicts import VerdictsSettings, verdicts
from tests.tasks.builders import cells, fails, run_stage, samples_table, says, script


def claims_table(**claims: str) -> pa.Table:
    """Return claims of row-1: response_0="..." is the first claim of the response."""
    rows = []
    for name, text in claims.items():
        side, _, number = name.rpartition("_")
        rows.append(
            {"row_id": "row-1", "side": side, "claim_id": f"{side}:{number}", "text": text, "status": "answered"}
        )
    return build_table(Stage.CLAIMS, rows)


def judge_claims(
    judge: JudgeSettings,
    sample: Mapping[str, Any],
    claims: pa.Table,
    *products: Product,
) -> dict[tuple[str, str, str], tuple[int | None, str]]:
    """Run the stage, and return verdict and status by kind, claim and premise."""
    tables = {Stage.SAMPLES: samples_table(sample), Stage.CLAIMS: claims}
    output = run_stage(verdicts, tables, VerdictsSettings(products=products, judge=judge))
    rows = cells(output.table, "kind", "claim_id", "premise", "verdict", "status")
    return {(kind, claim, premise): (verdict, status) for kind, claim, premise, verdict, status in rows}


def test_contexts_are_joined_into_one_premise(tmp_path: Path) -> None:
    judge = script(tmp_path, says("verdict", "It rains.", "one\ntwo", answer="yes"))
    found = judge_claims(
        judge,
        {"retrieved_contexts": ["one", "two"]},
        claims_table(response_0="It rains."),
        Product.RESPONSE_CLAIMS_BY_CONTEXTS,
    )
    assert found == {("support", "response:0", "contexts"): (1, "answered")}


TURN = {
    "retrieved_contexts": ["own"],
    "earlier_contexts": ["earlier"],
    "tool_results": ["found"],
    "earlier_answers": ["said"],
    "reference": "truth",
}


def test_claims_of_a_turn_are_judged_by_all_that_was_found_so_far(tmp_path: Path) -> None:
    judge = script(
        tmp_path,
        says("verdict", answer="no"),
        says("verdict", "known", "own\nearlier\nfound", answer="yes"),
        says("verdict", "repeated", "said", answer="yes"),
        says("verdict", "covered", "own", answer="yes"),
    )
    products = (
        Product.RESPONSE_CLAIMS_BY_CONTEXTS,
        Product.REFERENCE_CLAIMS_BY_CONTEXTS,
        Product.RESPONSE_CLAIMS_BY_EACH_CONTEXT,
    )
    claims = claims_table(response_0="known", response_1="repeated", response_2="new", reference_0="covered")
    found = judge_claims(judge, TURN, claims, *products)
    assert {key[1:]: verdict for key, (verdict, _) in found.items()} == {
        ("response:0", "sources"): 1,
        ("response:1", "sources"): 0,
        ("response:2", "sources"): 0,
        ("response:1", "earlier_answers"): 1,
        ("response:2", "earlier_answers"): 0,
        ("reference:0", "contexts"): 1,  # a retriever is judged by what it found for this question
        ("response:0", "context:0"): 0,
        ("response:1", "context:0"): 0,
        ("response:2", "context:0"): 0,
    }


def test_a_turn_after_answers_alone_is_judged_by_its_own_passages(tmp_path: Path) -> None:
    judge = script(tmp_path, says("verdict", "known", "own", answer="yes"))
    row = {"retrieved_contexts": ["own"], "earlier_answers": ["said"]}
    found = judge_claims(judge, row, claims_table(response_0="known"), Product.RESPONSE_CLAIMS_BY_CONTEXTS)
    assert found == {("support", "response:0", "contexts"): (1, "answered")}


def test_an_empty_premise_supports_nothing_and_is_not_asked_about(tmp_path: Path) -> None:
    found = judge_claims(
        script(tmp_path),
        {"retrieved_contexts": [], "reference": " "},
        claims_table(response_0="It rains."),
        Product.RESPONSE_CLAIMS_BY_CONTEXTS,
        Product.RESPONSE_CLAIMS_BY_REFERENCE,
    )
    assert set(found.values()) == {(0, "answered")}


def test_a_failed_answer_is_no_verdict(tmp_path: Path) -> None:
    found = judge_claims(
        script(tmp_path, fails("verdict")),
        {"reference": "It is dry."},
        claims_table(response_0="It rains."),
        Product.RESPONSE_CLAIMS_BY_REFERENCE,
    )
    assert found == {("support", "response:0", "reference"): (None, "failed")}


NOISE = (Product.RESPONSE_CLAIMS_BY_REFERENCE, Product.CLAIMS_BY_EACH_CONTEXT)
BY_EVERY_CONTEXT = {
    Side.RESPONSE: Product.RESPONSE_CLAIMS_BY_EACH_CONTEXT,
    Side.REFERENCE: Product.REFERENCE_CLAIMS_BY_EACH_CONTEXT,
}
NOISY = {"retrieved_contexts": ["first", "second"], "reference": "truth"}


def test_contexts_are_asked_only_about_claims_that_the_reference_does_not_support(tmp_path: Path) -> None:
    judge = script(
        tmp_path,
        says("verdict", answer="no"),
        says("verdict", "right", "truth", answer="yes"),
        says("verdict", "wrong", "second", answer="yes"),
    )
    found = judge_claims(
        judge, NOISY, claims_table(response_0="right", response_1="wrong", reference_0="covered"), *NOISE
    )
    assert set(found) == {
        ("support", "response:0", "reference"),
        ("support", "response:1", "reference"),
        ("support", "response:1", "context:0"),
        ("support", "response:1", "context:1"),
        ("support", "reference:0", "context:1"),
    }


def test_contexts_are_not_asked_if_the_reference_has_no_claims(tmp_path: Path) -> None:
    found = judge_claims(
        script(tmp_path, says("verdict", answer="no")), NOISY, claims_table(response_0="wrong"), *NOISE
    )
    assert set(found) == {("support", "response:0", "reference")}


def test_every_context_is_asked_if_verdicts_are_probabilities(tmp_path: Path) -> None:
    judge = script(tmp_path, says("verdict", answer={"yes": 0.9, "no": 0.1}))
    found = judge_claims(
        judge,
        NOISY,
        claims_table(response_0="right", reference_0="covered"),
        *NOISE,
        *BY_EVERY_CONTEXT.values(),
    )
    assert {(claim, premise) for _, claim, premise in found} == {
        ("response:0", "reference"),
        ("response:0", "context:0"),
        ("response:0", "context:1"),
        ("reference:0", "context:0"),
        ("reference:0", "context:1"),
    }


def test_the_probability_of_yes_is_kept(tmp_path: Path) -> None:
    judge = script(tmp_path, says("verdict", answer={"yes": 0.25, "no": 0.75}))
    tables = {Stage.SAMPLES: samples_table({"reference": "truth"}), Stage.CLAIMS: claims_table(response_0="claim")}
    output = run_stage(
        verdicts, tables, VerdictsSettings(products=(Product.RESPONSE_CLAIMS_BY_REFERENCE,), judge=judge)
    )
    assert cells(output.table, "verdict", "probability") == [(0, 0.25)]


def test_usefulness_is_asked_of_every_passage_that_says_something(tmp_path: Path) -> None:
    judge = script(
        tmp_path,
        says("usefulness_for_reference", "good", answer="yes"),
        says("usefulness_for_reference", "bad", answer="no"),
    )
    found = judge_claims(
        judge,
        {"user_input": "Q?", "reference": "truth", "retrieved_contexts": ["good", " ", "bad"]},
        claims_table(),
        Product.USEFULNESS_FOR_REFERENCE,
    )
    assert [verdict for verdict, _ in found.values()] == [1, 0, 0]
    assert [premise for _, _, premise in found] == ["context:0", "context:1", "context:2"]


def test_relevant_sentences_are_marked_by_number(tmp_path: Path) -> None:
    judge = script(tmp_path, says("relevant_sentences", answer={"relevant": [2, 9]}))
    rows = [
        {
            "row_id": "row-1",
            "side": "context_sentence",
            "claim_id": f"context_sentence:0:{i}",
            "text": text,
            "status": "answered",
        }
        for i, text in enumerate(["One.", "Two."])
    ]
    found = judge_claims(judge, {"user_input": "Q?"}, build_table(Stage.CLAIMS, rows), Product.SENTENCE_RELEVANCE)
    assert found == {
        ("relevance", "context_sentence:0:0", "user_input"): (0, "answered"),
        ("relevance", "context_sentence:0:1", "user_input"): (1, "answered"),
    }


def test_a_failed_list_of_relevant_sentences_fails_every_sentence(tmp_path: Path) -> None:
    rows = [
        {
            "row_id": "row-1",
            "side": "context_sentence",
            "claim_id": "context_sentence:0:0",
            "text": "One.",
            "status": "answered",
        }
    ]
    found = judge_claims(
        script(tmp_path, fails("relevant_sentences")),
        {"user_input": "Q?"},
        build_table(Stage.CLAIMS, rows),
        Product.SENTENCE_RELEVANCE,
    )
    assert found == {("relevance", "context_sentence:0:0", "user_input"): (None, "failed")}


def test_only_the_side_that_is_read_is_judged_against_each_context(tmp_path: Path) -> None:
    judge = script(tmp_path, says("verdict", answer="yes"))
    claims = claims_table(response_0="one", reference_0="two")
    for side, product in BY_EVERY_CONTEXT.items():
        found = judge_claims(judge, NOISY, claims, product)
        assert set(found) == {("support", f"{side}:0", "context:0"), ("support", f"{side}:0", "context:1")}


def test_a_side_that_is_read_whole_leaves_the_other_as_sparing_as_before(tmp_path: Path) -> None:
    judge = script(tmp_path, says("verdict", answer="yes"))
    claims = claims_table(response_0="right", reference_0="covered")
    found = judge_claims(judge, NOISY, claims, *NOISE, Product.RESPONSE_CLAIMS_BY_EACH_CONTEXT)
    assert set(found) == {
        ("support", "response:0", "reference"),
        ("support", "response:0", "context:0"),
        ("support", "response:0", "context:1"),
    }


POINTS = claims_table(key_point_0="whole", key_point_1="half", key_point_2="lost", key_point_3="unknown")
ANSWERED = {"response": "said", "retrieved_contexts": ["one", "two"]}


def test_key_points_are_judged_in_three_levels_and_missing_ones_looked_for_in_the_contexts(tmp_path: Path) -> None:
    judge = script(
        tmp_path,
        says("key_point", answer="no"),
        says("key_point", "whole", "said", answer="yes"),
        says("key_point", "half", "said", answer="partly"),
        says("verdict", answer="no"),
        says("verdict", "half", "one\ntwo", answer="yes"),
        says("verdict", "lost", "one\ntwo", answer="yes"),
    )
    found = judge_claims(judge, ANSWERED, POINTS, Product.KEY_POINTS_BY_RESPONSE)
    by_response = {
        (kind, int(claim[-1])): verdict for (kind, claim, by), (verdict, _) in found.items() if by == "response"
    }
    assert by_response == {
        **{("support", i): int(i == 0) for i in range(4)},
        **{("partial_support", i): int(i < 2) for i in range(4)},
    }
    by_contexts = {int(claim[-1]): verdict for (_, claim, by), (verdict, _) in found.items() if by == "contexts"}
    assert by_contexts == {1: 1, 2: 1, 3: 0}


def test_key_points_are_looked_for_in_the_contexts_once(tmp_path: Path) -> None:
    judge = script(tmp_path, says("key_point", answer="no"), says("verdict", answer="yes"))
    products = (Product.KEY_POINTS_BY_RESPONSE, Product.KEY_POINTS_BY_CONTEXTS)
    tables = {Stage.SAMPLES: samples_table(ANSWERED), Stage.CLAIMS: POINTS}
    output = run_stage(verdicts, tables, VerdictsSettings(products=products, judge=judge))
    assert sorted(premise for (premise,) in cells(output.table, "premise")) == ["contexts"] * 4 + ["response"] * 8
    assert output.usage.questions == 8


def test_a_failed_key_point_has_no_level_and_is_not_looked_for(tmp_path: Path) -> None:
    judge = script(tmp_path, fails("key_point"), says("verdict", answer="yes"))
    found = judge_claims(judge, ANSWERED, claims_table(key_point_0="whole"), Product.KEY_POINTS_BY_RESPONSE)
    assert found == {(kind, "key_point:0", "response"): (None, "failed") for kind in ("support", "partial_support")}
