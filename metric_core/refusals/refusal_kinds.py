"""The kinds of refusals, each declared once."""

from enum import StrEnum


class RefusalKind(StrEnum):
    """Kind of a response that gives no answer."""

    CLARIFYING_QUESTION = "clarifying question"
    """It asks what the user means."""
    NOTHING_FOUND = "nothing found"
    """It says that the assistant does not know, or that the documents do not say."""
    POLICY_REFUSAL = "policy refusal"
    """It says that the assistant cannot, may not or will not help."""
