"""Declare the option that says what a row is in data that are conversations."""

from typing import Annotated, Literal

from tasks.options.option import Flag, Option, OptionGroup


class ConversationOptions(OptionGroup):
    """The option that says what a row is in data that are conversations."""

    conversations: Annotated[
        Literal["turns", "whole"] | None,
        Option(
            "Rows of data that are conversations: one per answer of the assistant (turns), or one per conversation "
            "(whole). Default: whole if the metrics are named and each of them can judge a conversation as one text, "
            "else turns.",
            path=False,
            may_hold_secret=False,
            affects_scores=True,
            cli=Flag(
                long="--conversations",
                metavar="turns|whole",
                help="Rows of conversations: their answers (turns), or one row each (whole).",
            ),
            examples=["whole"],
        ),
    ] = None
