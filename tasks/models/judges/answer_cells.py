"""Build the cells of stage tables that say how a judge came to an answer."""

from typing import Any

from metric_core.records import AnswerStatus
from metric_core.schemas import LONGEST_REPLY
from tasks.models.judges.highlights import read_spans
from tasks.models.judges.protocol import ChoiceAnswer, GenerateAnswer


def verdict_cells(answer: ChoiceAnswer) -> dict[str, Any]:
    """Return the cells of a verdict: the votes, and a reply that is no usable label or marks words of the claim."""
    is_kept = answer.status is not AnswerStatus.ANSWERED or read_spans(answer.reply) is not None
    return {"panel": _votes(answer, 0), "reply": reply_cell(answer) if is_kept else None}


def vote_cells(answer: ChoiceAnswer | GenerateAnswer, vote: int = 0) -> dict[str, Any]:
    """Return the cell `panel`: the answers of a panel's judges in one vote, or None without a panel."""
    return {"panel": _votes(answer, vote) if isinstance(answer, ChoiceAnswer) else None}


def _votes(answer: ChoiceAnswer, vote: int) -> list[dict[str, Any]] | None:
    if not answer.panel:
        return None
    votes = [
        {"judge": each.judge, "label": each.label, "probability": each.probability}
        for each in answer.panel
        if each.vote == vote
    ]
    return votes or None


def reply_cell(answer: ChoiceAnswer | GenerateAnswer) -> str | None:
    """Return the judge's reply for the column `reply`, cut if it is long; None if there is none.

    >>> from metric_core.records import AnswerStatus
    >>> reply_cell(ChoiceAnswer(AnswerStatus.FAILED, reason="reply is none of the labels", reply="Perhaps."))
    'Perhaps.'
    """
    if not answer.reply:
        return None
    if len(answer.reply) <= LONGEST_REPLY:
        return answer.reply
    return f"{answer.reply[:LONGEST_REPLY]} [... cut: the reply has {len(answer.reply):,} characters]"
