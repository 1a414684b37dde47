"""Kinds of judge questions, and the groups that they belong to."""

from enum import StrEnum
from typing import Self


class KindGroup(StrEnum):
    """Group of kinds of judge questions: verdicts on a passage, written texts, or ratings of a row as a whole."""

    VERDICTS = "verdicts"
    WRITING = "writing"
    RATINGS = "ratings"


class QuestionKind(StrEnum):
    """Kind of a judge question; each kind has one prompt, and belongs to one group.

    A rating whose prompt alone says what is rated has a subject, which is shown to the judge when it explains the
    rating.
    """

    group: KindGroup
    subject: str

    def __new__(cls, value: str, group: KindGroup, subject: str = "") -> Self:
        """Create a kind of a group."""
        kind = str.__new__(cls, value)
        kind._value_, kind.group, kind.subject = value, group, subject
        return kind

    FOLLOW_UP = "follow_up", KindGroup.WRITING
    CLAIMS = "claims", KindGroup.WRITING
    QUESTIONS = "questions", KindGroup.WRITING
    VERDICT = "verdict", KindGroup.VERDICTS
    USEFULNESS_FOR_REFERENCE = "usefulness_for_reference", KindGroup.VERDICTS
    USEFULNESS_FOR_RESPONSE = "usefulness_for_response", KindGroup.VERDICTS
    RELEVANT_SENTENCES = "relevant_sentences", KindGroup.VERDICTS
    KEY_POINT = "key_point", KindGroup.VERDICTS
    ACCURACY_1 = "accuracy_1", KindGroup.RATINGS, "how well the response agrees with the reference, which is correct"
    ACCURACY_2 = "accuracy_2", KindGroup.RATINGS, "how well the response agrees with the reference, which is correct"
    CONTEXT_RELEVANCE_1 = "context_relevance_1", KindGroup.RATINGS, "how relevant the passages are to the question"
    CONTEXT_RELEVANCE_2 = "context_relevance_2", KindGroup.RATINGS, "how relevant the passages are to the question"
    GROUNDEDNESS_1 = "groundedness_1", KindGroup.RATINGS, "how well the response is grounded in the passages"
    GROUNDEDNESS_2 = "groundedness_2", KindGroup.RATINGS, "how well the response is grounded in the passages"
    ASPECT = "aspect", KindGroup.RATINGS
    CRITERIA_CATEGORY = "criteria_category", KindGroup.RATINGS
    CRITERIA_INTEGER = "criteria_integer", KindGroup.RATINGS
    CRITERIA_NUMBER = "criteria_number", KindGroup.RATINGS
    RUBRIC = "rubric", KindGroup.RATINGS
    INSTANCE_RUBRIC = "instance_rubric", KindGroup.RATINGS
    REFUSAL = "refusal", KindGroup.RATINGS, "whether the response answers the question or declines to"
    PASSAGE_RELEVANCE = "passage_relevance", KindGroup.RATINGS, "how well the passage answers the question"
    SUFFICIENCY = "sufficiency", KindGroup.RATINGS, "whether the passages are enough to answer the question"
    EXPLANATION = "explanation", KindGroup.WRITING
    RATING_EXPLANATION = "rating_explanation", KindGroup.WRITING
    KEY_POINT_WRITING = "key_point_writing", KindGroup.WRITING
    INDEX_QUESTION = "index_question", KindGroup.WRITING


ON_CLAIMS = (QuestionKind.VERDICT, QuestionKind.KEY_POINT)
"""Kinds of question on a claim and its premise, for judges that only compare the two."""

FOR_KEY_POINTS = (QuestionKind.PASSAGE_RELEVANCE, QuestionKind.KEY_POINT_WRITING)
"""Kinds of question that key points are written with, where neither they nor a reference are given."""

RATING_KINDS = tuple(kind for kind in QuestionKind if kind.group is KindGroup.RATINGS)
"""Kinds of question that a metric can ask about a sample as a whole."""
