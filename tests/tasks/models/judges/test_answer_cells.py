"""Cells of stage tables that say how a judge came to an answer."""

import pytest

from metric_core.records import AnswerStatus
from metric_core.schemas import LONGEST_REPLY
from tasks.models.judges.answer_cells import reply_cell, verdict_cells, vote_cells
from tasks.models.judges.highlights import spans_reply
from tasks.models.judges.protocol import ChoiceAnswer, GenerateAnswer, PanelVote

HIGHLIGHTS = spans_reply([{"start": 0, "end": 2, "text": "It", "probability": 0.9}])


def test_a_long_reply_is_cut_and_says_so() -> None:
    cell = reply_cell(GenerateAnswer(AnswerStatus.FAILED, reply="x" * 5000))
    assert cell == "x" * LONGEST_REPLY + " [... cut: the reply has 5,000 characters]"


def test_an_empty_reply_is_none() -> None:
    assert reply_cell(GenerateAnswer(AnswerStatus.FAILED, reply="")) is None


@pytest.mark.parametrize(
    ("answer", "reply"),
    [
        (ChoiceAnswer(AnswerStatus.ANSWERED, ("yes",), reply="Yes."), None),
        (ChoiceAnswer(AnswerStatus.ANSWERED, ("no",), reply=HIGHLIGHTS), HIGHLIGHTS),
        (ChoiceAnswer(AnswerStatus.FAILED, reply="Perhaps."), "Perhaps."),
    ],
    ids=["a label", "words of the claim", "no label"],
)
def test_the_reply_of_a_verdict_is_kept_where_it_says_more_than_the_label(
    answer: ChoiceAnswer, reply: str | None
) -> None:
    assert verdict_cells(answer) == {"panel": None, "reply": reply}


def test_the_votes_of_a_panel_are_kept_vote_by_vote() -> None:
    votes = (PanelVote("lead", "yes", 0.9), PanelVote("lead", "no", None, 1), PanelVote("other", None, None, 1))
    answer = ChoiceAnswer(AnswerStatus.ANSWERED, ("yes", "no"), panel=votes)
    first = [{"judge": "lead", "label": "yes", "probability": 0.9}]
    assert vote_cells(answer) == {"panel": first}
    assert [vote["judge"] for vote in vote_cells(answer, 1)["panel"]] == ["lead", "other"]
    assert vote_cells(answer, 2) == vote_cells(GenerateAnswer(AnswerStatus.ANSWERED, {})) == {"panel": None}
    assert verdict_cells(answer)["panel"] == first
