"""Answer questions about texts in scripts that the built-in judge cannot read: verbatim matches only.

The judge compares words, which it separates at spaces, and vectors of an embedder for English; it was fitted and
measured on English. Other languages of the Latin script share enough of that for a baseline. In other scripts it would
invent verdicts, so only a claim that the context repeats word for word has one.
"""

from collections.abc import Mapping

from metric_core.prompts import judge_questions
from metric_core.prompts.judge_questions import ChoiceQuestion, Kind
from metric_core.question_kinds import ON_CLAIMS, QuestionKind
from tasks.models.recognizers.scripts import is_mostly_latin, is_unspaced, normalize_words

_READ: Mapping[Kind, tuple[str, ...]] = {
    **dict.fromkeys(ON_CLAIMS, (judge_questions.CLAIM, judge_questions.CONTEXT)),
    QuestionKind.USEFULNESS_FOR_REFERENCE: (
        judge_questions.REFERENCE,
        judge_questions.CONTEXT,
        judge_questions.USER_INPUT,
    ),
    QuestionKind.USEFULNESS_FOR_RESPONSE: (
        judge_questions.RESPONSE,
        judge_questions.CONTEXT,
        judge_questions.USER_INPUT,
    ),
}
"""The texts that a verdict depends on; the first is searched for in the second."""


def is_readable(question: ChoiceQuestion) -> bool:
    """Return whether the judge can read all texts that its answer depends on."""
    return all(is_mostly_latin(question.texts[role]) for role in _READ[question.kind])


def stands_verbatim(question: ChoiceQuestion) -> bool:
    r"""Return whether the claim, or the whole answer, occurs word for word in the context.

    >>> from metric_core.prompts.judge_questions import ask_verdict
    >>> context = "\u5458\u5de5\u6709\u5047\u671f\u3002\u5317\u4eac\u662f\u9996\u90fd\u3002"
    >>> stands_verbatim(ask_verdict("\u5317\u4eac\u662f\u9996\u90fd", context))
    True
    """
    searched, context = (normalize_words(question.texts[role]) for role in _READ[question.kind][:2])
    if any(map(is_unspaced, searched)):
        searched, context = (text.replace(" ", "") for text in (searched, context))
    return bool(searched.strip()) and searched in context
