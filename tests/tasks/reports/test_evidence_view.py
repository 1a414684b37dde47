"""The evidence of one row, as the report shows it."""

from typing import Any

import pytest

from metric_core.evidence_spans import EvidenceSpan, PlacedSpan, SpanPart, SpanState
from metric_core.metrics.context_entity_recall import EXACT, NORMALIZED
from metric_core.records import Direction
from metric_core.stages import Stage
from tasks.documents.run.score_table import MetricScale
from tasks.reports.run.claims_view import claims_view
from tasks.reports.run.evidence_view import LONGEST_PASSAGES, row_view
from tasks.reports.run.passages import segment
from tasks.reports.run.row_tables import RowTables
from tasks.reports.truncation import LONGEST_TEXT
from tests.tasks.reports import folders

YARDSTICKS = [
    MetricScale("faithfulness", Direction.HIGHER, (0, 1)),
    MetricScale("noise_sensitivity", Direction.LOWER, (0, 1)),
    MetricScale("instance_rubrics", Direction.HIGHER, None),
    MetricScale("not_computed", Direction.HIGHER, (0, 1)),
]
COLUMNS = (
    "user_input",
    "response",
    "retrieved_contexts",
    "reference",
    "reference_contexts",
    "retrieved_context_ids",
    "reference_context_ids",
    "rubrics",
    "extras",
    "retrieved_context_scores",
    "session_id",
    "conversation",
    "earlier_turns",
    "earlier_contexts",
    "tool_results",
    "earlier_answers",
    "relevance_judgments",
    "key_points",
)


def full(rows: list[dict[str, Any]], *columns: str) -> list[dict[str, Any]]:
    """Rows as a table gives them: with every column."""
    return [dict.fromkeys(columns) | row for row in rows]


def view(row_id: str, match: str = NORMALIZED, **changes: Any) -> dict[str, Any]:
    stages = {
        Stage.CLAIMS: full(folders.CLAIMS, "claim_id", "text", "reason", "reply"),
        Stage.VERDICTS: full(folders.VERDICTS, "verdict", "probability", "reason", "panel", "reply"),
        Stage.EXPLANATIONS: full(folders.EXPLANATIONS, "text", "reason", "reply"),
        Stage.ENTITIES: full(folders.ENTITIES, "passage", "text", "label", "reason"),
        Stage.QUESTIONS: full(folders.QUESTIONS, "k", "text", "noncommittal", "reason", "reply"),
        Stage.SIMILARITY: full(folders.SIMILARITIES, "reason"),
        Stage.RATINGS: full(folders.RATINGS, "value", "feedback", "probabilities", "reason", "panel", "reply"),
    }
    sample = next(sample for sample in folders.STAGES[Stage.SAMPLES] if sample["row_id"] == row_id)
    cells = [
        {"metric": metric, "value": s.value, "status": s.status, "reason": s.reason, "label": s.label}
        for metric, s in folders.SCORES[row_id].items()
    ]
    tables = RowTables(
        dict.fromkeys(COLUMNS) | sample | changes,
        cells,
        {stage: [row for row in rows if row["row_id"] == row_id] for stage, rows in stages.items()},
    )
    return row_view(tables, YARDSTICKS, match)


def test_cells_come_in_the_order_of_the_metrics_with_their_tone() -> None:
    assert view("good")["cells"] == [
        {"status": "scored", "value": 1.0, "tone": "good2"},
        {"status": "scored", "value": 0.0, "tone": "good2"},
        {"status": "scored", "value": 4.0, "label": "1-5", "tone": "none"},
        None,
    ]


def test_cells_without_a_value_say_why() -> None:
    assert view("empty")["cells"][:2] == [
        {"status": "failed", "reason": "no usable reply from the judge", "tone": "none"},
        {"status": "undefined", "reason": "no retrieved contexts", "tone": "none"},
    ]


def test_a_claim_has_its_verdicts_whole_premises_first_and_passages_apart() -> None:
    claim = view("good")["claims"][0]["claims"][0]
    assert [(v["premise"], v["verdict"], v["probability"]) for v in claim["verdicts"]] == [
        ("contexts", 0, 0.25),
        ("reference", 1, 0.9),
    ]
    assert [(v["premise"], v["verdict"]) for v in claim["passages"]] == [(0, 1)]


def test_a_failed_verdict_keeps_its_reason() -> None:
    verdict = view("good")["claims"][0]["claims"][1]["verdicts"][0]
    assert verdict == {
        "premise": "contexts",
        "reason": "no usable verdict from the judge",
        "reply": {"text": "I would rather not say."},
    }


def test_a_verdict_has_its_explanation_and_the_votes_of_its_panel() -> None:
    verdict = view("good")["claims"][0]["claims"][0]["verdicts"][0]
    assert verdict["why"] == {"text": "No passage names the year."}
    assert verdict["panel"] == [
        {"judge": "small", "label": "yes", "probability": 0.7},
        {"judge": folders.ATTACK, "label": None, "probability": None},
    ]


def test_an_explanation_that_failed_says_why() -> None:
    [useful] = view("good")["passages"][1]["useful"]
    assert useful["why"] == {"text": "no explanation: no usable reply from the judge"}


def test_the_judges_own_words_stand_with_what_was_made_of_them() -> None:
    good, hostile = view("good"), view(folders.HOSTILE_ID)
    assert good["claims"][0]["reply"] == {"text": folders.REPLY}
    assert good["claims"][1]["reply"] is None
    assert good["passages"][0]["relevance"]["reply"] == {"text": '{"relevant": [2, 3]}'}
    assert good["passages"][1]["relevance"]["reply"] is None
    assert hostile["claims"][0]["claims"][0]["verdicts"][0]["why_reply"] == {"text": folders.ATTACK}
    assert hostile["questions"]["reply"] == {"text": folders.ATTACK}
    assert hostile["ratings"][0]["votes"][0]["reply"] == {"text": folders.ATTACK}


def test_a_verdict_leads_to_the_closest_sentence_of_its_own_passage() -> None:
    row = view("good")
    [verdict] = row["claims"][0]["claims"][0]["passages"]
    assert row["passages"][verdict["premise"]]["pieces"][verdict["piece"]] == "The taj mahal\n  opened in 1653."


def test_the_closest_sentence_of_a_claim_is_a_piece_of_a_passage() -> None:
    row = view("good")
    closest = row["claims"][0]["claims"][0]["closest"]
    assert row["passages"][closest["passage"]]["pieces"][closest["piece"]] == "The taj mahal\n  opened in 1653."
    assert (closest["shared"], closest["words"]) == (3, 4)


def test_a_side_without_claims_says_why() -> None:
    assert view("empty")["claims"] == [
        {
            "side": "response",
            "gap": {"status": "failed", "reason": "no usable reply from the judge"},
            "reply": {"text": "{"},
            "claims": [],
        }
    ]


def test_relevant_sentences_are_pieces_of_their_passage() -> None:
    first, second = view("good")["passages"]
    assert [first["pieces"][i] for i in first["relevance"]["pieces"]] == ["The taj mahal\n  opened in 1653."]
    assert (first["relevance"]["relevant"], first["relevance"]["sentences"]) == (1, 2)
    assert second["relevance"]["relevant"] == 1


def test_usefulness_stands_with_its_passage() -> None:
    first, second = view("good")["passages"]
    assert first["useful"] == []
    [useful] = second["useful"]
    assert (useful["for"], useful["verdict"], useful["probability"]) == ("usefulness_for_reference", 0, 0.1)


@pytest.mark.parametrize(("match", "passages"), [(NORMALIZED, [[0], []]), (EXACT, [[], []])])
def test_entities_are_found_as_the_metric_compares_them(match: str, passages: list[list[int]]) -> None:
    entities = view("good", match)["entities"]["entities"]
    assert [entity["text"]["text"] for entity in entities] == ["The Taj Mahal", "Agra"]
    assert [entity["passages"] for entity in entities] == passages


def test_regenerated_questions_have_their_cosine_and_flag() -> None:
    assert view("good")["questions"]["questions"] == [
        {"text": {"text": "When did it open?"}, "noncommittal": False, "cosine": 0.5}
    ]
    assert view(folders.HOSTILE_ID)["questions"]["questions"][0] == {
        "text": {"text": folders.ATTACK},
        "noncommittal": True,
        "cosine": None,
    }
    assert view("empty")["questions"]["gap"] == {"status": "undefined", "reason": "empty response"}


def test_similarities_are_those_of_the_answer() -> None:
    assert view("good")["similarities"] == [{"pair": "answer", "value": -0.0001, "reason": None}]


def test_ratings_keep_template_value_probabilities_and_feedback() -> None:
    [rating] = view(folders.HOSTILE_ID)["ratings"]
    assert (rating["metric"], rating["template"]) == ("house_style", folders.ATTACK)
    [vote] = rating["votes"]
    assert vote["value"] == folders.ATTACK
    assert vote["feedback"] == {"text": folders.ATTACK}
    assert vote["probabilities"] == [(folders.ATTACK, 0.5)]
    assert [found["judge"] for found in vote["panel"]] == ["small", folders.ATTACK]


def test_other_columns_are_shown_where_they_hold_something() -> None:
    columns = {column["name"]: column["text"]["text"] for column in view("good", reference_contexts=[])["columns"]}
    assert columns == {
        "retrieved_context_ids": "a\nb",
        "rubrics": "score1_description: bad",
        "extras": "topic: history",
    }


def test_passages_show_the_id_and_the_score_of_the_retriever() -> None:
    first, second = view("good", retrieved_context_scores=[0.123456, None])["passages"]
    assert (first["name"], first["score"]) == ({"text": "a"}, "0.1235")
    assert second["name"] == {"text": "b"}
    assert "score" not in second
    assert "name" not in view("long")["passages"][0]


def test_missing_and_empty_texts_differ() -> None:
    row = view("empty")
    assert row["question"] is None
    assert row["answer"] == {"text": ""}


def test_long_texts_are_shortened_and_say_how_long_they_are() -> None:
    row = view("long")
    assert row["answer"] == {"text": folders.LONG[:LONGEST_TEXT], "of": len(folders.LONG)}
    assert [sum(map(len, passage["pieces"])) for passage in row["passages"]] == [LONGEST_TEXT] * 3
    assert [passage["of"] for passage in row["passages"]] == [len(folders.LONG)] * 3


def test_many_long_passages_share_what_a_row_may_take() -> None:
    row = view("long", retrieved_contexts=[folders.LONG] * 50)
    assert sum(len(piece) for passage in row["passages"] for piece in passage["pieces"]) <= LONGEST_PASSAGES


def test_a_turn_shows_what_it_takes_from_its_conversation() -> None:
    sample = {
        "user_input": "And in winter?",
        "earlier_turns": "User: When is it open?",
        "earlier_contexts": ["It is closed on Sunday."],
        "tool_results": ["Order 4711 is ready."],
        "earlier_answers": ["It opens at nine."],
    }
    first = {"row_id": "turn", "side": "response", "claim_id": "response:0", "text": "Order 4711 is ready."}
    judged = {"row_id": "turn", "kind": "support", "claim_id": "response:0", "status": "answered"}
    verdicts = [judged | {"premise": "sources", "verdict": 0}, judged | {"premise": "earlier_answers", "verdict": 1}]
    tables = RowTables(
        dict.fromkeys(COLUMNS) | {"row_id": "turn", "row_number": 1} | sample,
        [],
        {
            Stage.FOLLOW_UPS: [{"row_id": "turn", "question": "When is it open in winter?", "reason": None}],
            Stage.CLAIMS: full([first | {"status": "answered"}], "reason", "reply"),
            Stage.VERDICTS: full(verdicts, "probability", "reason", "panel", "reply"),
        },
    )
    shown = row_view(tables, YARDSTICKS, NORMALIZED)
    assert shown["asked"] == {"question": {"text": "When is it open in winter?"}, "reason": None}
    assert shown["before"]["text"] == "User: When is it open?"
    assert [source["name"] for source in shown["sources"]] == ["earlier passage 1", "tool result 1", "earlier answer 1"]
    (claim,) = shown["claims"][0]["claims"]
    assert claim["source"] == "tool result 1"
    assert [(verdict["premise"], verdict["verdict"]) for verdict in claim["verdicts"]] == [
        ("sources", 0),
        ("earlier_answers", 1),
    ]


def test_key_points_say_where_they_were_lost() -> None:
    claims = [
        {"side": "key_point", "claim_id": f"key_point:{i}", "text": str(i), "importance": each}
        for i, each in enumerate(["vital", "okay", None, "vital", "vital", "vital"])
    ]
    verdicts = [
        {"kind": "support", "claim_id": f"key_point:{i}", "premise": premise, "verdict": verdict}
        for i, premise, verdict in (
            *((i, "response", int(i == 0)) for i in range(6)),
            *((i, "contexts", int(i == 1)) for i in (1, 2, 4, 5)),
        )
    ]
    verdicts += [{"kind": "partial_support", "claim_id": "key_point:1", "premise": "response", "verdict": 1}]
    gone, there = (
        [PlacedSpan(EvidenceSpan("It rains."), state, parts).to_json()]
        for state, parts in ((SpanState.LOST, ()), (SpanState.CARRIED, (SpanPart("fees.md/3", 0.0, 1.0, 0.1),)))
    )
    sample = dict.fromkeys(COLUMNS) | {
        "row_id": "row-1",
        "retrieved_contexts": ["A passage."],
        "point_evidence": [[], [], [], [], gone, there],
    }
    stages = {
        Stage.CLAIMS: full(claims, "status", "reason", "reply"),
        Stage.VERDICTS: full(verdicts, "probability", "reason", "panel", "reply", "status"),
    }
    (shown,) = claims_view(RowTables(sample, [], stages), [segment("A passage.")])
    assert [(claim.get("importance"), claim.get("lost")) for claim in shown["claims"]] == [
        (None, None),
        ("okay", "stated only in part: the passages have it, the generator left it out"),
        (None, "missing: the passages do not have it, the index did not find it"),
        (None, "missing: whether the passages have it is unknown"),
        (None, "missing: the passages do not have it, the index did not find it (its evidence is gone)"),
        (None, "missing: the passages do not have it, the index did not find it (it is in 'fees.md/3')"),
    ]
