"""Reasons why a cell has no value, as the score table states them: one wording per reason, so that counts add up."""

from collections.abc import Collection

NO_RESPONSE_CLAIMS = "no claims in the response"
NO_REFERENCE_CLAIMS = "no claims in the reference"
NO_REFERENCE_CONTEXT_CLAIMS = "no claims in the reference contexts"
NO_RESPONSE_SENTENCES = "no sentences in the response"
NO_CITATIONS = "no citations in the response"
NO_CLAIMS = "no claims in the response and the reference"
NO_REFERENCE_SENTENCES = "no sentences in the reference"
NO_KEY_POINTS = "no key points"
NO_VITAL_KEY_POINTS = "no vital key points"
NO_REFERENCE_ENTITIES = "no entities in the reference"
NO_CONTEXT_ENTITIES = "no entities in the contexts"
NO_REFERENCE_ENTITIES_IN_CONTEXTS = "no entities of the reference in the contexts"
NO_CONTEXTS = "no retrieved contexts"
NO_REFERENCE_CONTEXTS = "no reference contexts"
NO_RELEVANT_PASSAGE = "no passage is judged relevant"
IDS_OF_OTHER_PASSAGES = "ids that are not one per context"
NO_ANSWER_IN_CONTEXTS = "no answer in the contexts"
NO_QUESTIONS = "no question could be regenerated from the response"
NO_RUBRICS = "no rubrics"
UNREADABLE_RUBRICS = "rubrics that are not score<number>_description"
ZERO_VECTOR = "zero embedding vector"
UNKNOWN_SCRIPT = "script unknown to the embedder"
UNKNOWN_SCRIPT_TO_JUDGE = "script unknown to the judge"
NO_WORDS = "no words to embed"
TOO_LONG_FOR_CROSS_ENCODER = "text longer than the cross-encoder reads"
NEEDS_LANGUAGE_MODEL = "needs a language-model judge"
NO_USABLE_VERDICT = "no usable verdict from the judge"
NO_USABLE_RATING = "no usable rating from the judge"
NO_USABLE_REPLY = "no usable reply from the judge"
NO_USABLE_VECTOR = "no usable vector from the embedder"


def wrong_type(column: str, wanted: str) -> str:
    """Return the reason for a value of a plugin's column that has another type than the plugin declares.

    >>> wrong_type("priority", "number")
    'priority is not a number'
    """
    return f"{column} is not a {wanted}"


def cannot_answer(kind: str) -> str:
    """Return the reason for a judge that cannot answer a kind of question.

    >>> cannot_answer("verdict")
    'the judge cannot answer questions of kind verdict'
    """
    return f"the judge cannot answer questions of kind {kind}"


def empty_column(column: str) -> str:
    """Return the reason for a column that is present but empty.

    >>> empty_column("response")
    'empty response'
    """
    return f"empty {column}"


def why_left_out(lacking: Collection[str]) -> str:
    """Return the reason for a metric that is not computed by default.

    Args:
        lacking: Columns that the data lacks; empty if the judge cannot rate.

    >>> why_left_out(["reference", "rubrics"]), why_left_out([])
    ('no reference, rubrics', 'needs a language-model judge')
    """
    return f"no {', '.join(lacking)}" if lacking else NEEDS_LANGUAGE_MODEL


def missing_column(column: str) -> str:
    """Return the reason for a column that the data does not have.

    >>> missing_column("reference")
    'no reference'
    """
    return f"no {column}"


def declining_column(column: str) -> str:
    """Return the reason for a text that declines to answer, so that no context can help to arrive at it.

    >>> declining_column("response")
    'response that declines to answer'
    """
    return f"{column} that declines to answer"


NOTHING_FOUND = frozenset(
    {
        NO_RESPONSE_CLAIMS,
        NO_REFERENCE_CLAIMS,
        NO_REFERENCE_CONTEXT_CLAIMS,
        NO_RESPONSE_SENTENCES,
        NO_REFERENCE_SENTENCES,
        NO_KEY_POINTS,
        NO_REFERENCE_ENTITIES,
        NO_CONTEXT_ENTITIES,
        NO_REFERENCE_ENTITIES_IN_CONTEXTS,
        NO_CONTEXTS,
        NO_REFERENCE_CONTEXTS,
        NO_QUESTIONS,
        ZERO_VECTOR,
        empty_column("response"),
        empty_column("reference"),
        empty_column("reference_contexts"),
    }
)
"""Reasons why a stage has nothing for a row. Any other undefined row is due to a judge that cannot answer this kind of
question."""
