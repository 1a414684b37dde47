"""Declare the option that says what a row is in data that are conversations."""

from typing import Annotated, Literal

from tasks.options.option import Flag, Option, OptionGroup


class ConversationOptions(OptionGroup, affects_scores=True):
    """The option that says what a row is in data that are conversations."""

    conversations: Annotated[
        Literal["turns", "whole"] | None,
        Option(
            "Rows of data that are conversations: one per answer of the assistant (turns), or one per conversation "
            "(whole). Default: whole if the metrics are named and each of them can judge a conversation as one text, "
            "else turns.",
            cli=Flag(
                long="--conversations",
                metavar="turns|whole",
                help="Rows of conversations: their answers (turns), or one row each (whole).",
            ),
            examples=["whole"],
        ),
    ] = None


class FollowUpOptions(OptionGroup, affects_scores=True):
    """The option that says which question is judged where a question follows others."""

    follow_ups: Annotated[
        Literal["rewrite", "keep"],
        Option(
            "Questions that follow others in a conversation: made self-contained by the judge for the metrics that "
            "read the question (rewrite), or judged as they are (keep).",
            by_run=True,
            cli=Flag(
                long="--follow-ups",
                metavar="rewrite|keep",
                help="Follow-up questions: self-contained (rewrite) or as they are (keep).",
            ),
            examples=["keep"],
        ),
    ] = "rewrite"
