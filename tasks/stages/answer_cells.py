"""Build the cells of stage tables that hold a judge's reply and the votes of a panel."""

from typing import Any

from metric_core.schemas import LONGEST_REPLY
from tasks.models.judges.protocol import ChoiceAnswer, GenerateAnswer


def panel_cell(answer: ChoiceAnswer, vote: int = 0) -> list[dict[str, Any]] | None:
    """Return the answers of a panel's judges in one vote, for the column `panel`; None without a panel."""
    votes = [
        {"judge": given.judge, "label": given.label, "probability": given.probability}
        for given in answer.panel
        if given.vote == vote
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
