"""Write questions that a response would answer, for comparison with the user question."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import cycle, islice

from metric_core.refusals.refusal_forms import declines
from tasks.models.judges.builtin.cleaning import clean, makes_no_claim
from tasks.models.recognizers.spacy_pipeline import Parse, ParsedWord, SpacyPipeline

SUBJECTS = frozenset({"nsubj", "nsubjpass", "csubj", "csubjpass", "expl"})
"""Dependencies of the subject of a sentence on its verb."""
_SENTENCES_USED = 3
_TOPICS_USED = 6


@dataclass(frozen=True, slots=True)
class RegeneratedQuestions:
    """The questions regenerated from a response.

    Args:
        questions: Questions, those closest to the content of the response first.
        noncommittal: True if the response avoids an answer.
    """

    questions: tuple[str, ...]
    noncommittal: bool


def write_questions(
    responses: Sequence[str], counts: Sequence[int], pipeline: SpacyPipeline
) -> list[RegeneratedQuestions]:
    """Write questions for each response, and detect whether it avoids an answer.

    The questions reuse the words of the response: its first sentences as yes-no questions, and a question about its
    topics. Questions are repeated if a response is too short for the requested number of distinct ones.

    Args:
        counts: Number of questions for each response.
    """
    sentences = [[clean(sentence) for sentence in found] for found in pipeline.sentences(responses)]
    usable = [
        [sentence for sentence in found if not makes_no_claim(sentence)] or [sentence for sentence in found if sentence]
        for found in sentences
    ]
    parses = iter(pipeline.parse([sentence for found in usable for sentence in found]))
    results = []
    for response, statements, count in zip(responses, usable, counts, strict=True):
        questions = list(dict.fromkeys(_questions([next(parses) for _ in statements], response)))
        results.append(RegeneratedQuestions(tuple(islice(cycle(questions), count)), declines(response)))
    return results


def _questions(parses: Sequence[Parse], response: str) -> Iterator[str]:
    """Yield questions in order of preference."""
    topics = list(dict.fromkeys(chunk.text for parse in parses for chunk in parse.noun_chunks if _names_a_topic(chunk)))
    for parse in parses[: _SENTENCES_USED - 1]:
        yield ask_whether(parse)
    yield f"What about {', '.join(topics[:_TOPICS_USED]) or ' '.join(response.split())}?"
    yield from (_who_or_what(parse) for parse in parses[:_SENTENCES_USED])
    yield from (ask_whether(parse) for parse in parses[_SENTENCES_USED - 1 : _SENTENCES_USED])
    yield from (f"What is known about {topic}?" for topic in topics)


def _names_a_topic(chunk: Iterable[ParsedWord]) -> bool:
    return any(word.pos_ in {"NOUN", "PROPN", "NUM"} for word in chunk)


def ask_whether(parse: Parse) -> str:
    """Turn a statement into a yes-no question: "Staff get a bonus." -> "Do Staff get a bonus?"."""
    root = next(sentence.root for sentence in parse.sents)
    subject = next((child for child in root.children if child.dep_ in SUBJECTS), None)
    if subject is None:
        return _ask("Is it", parse.text)
    start = min(word.i for word in subject.subtree)
    helper = next((child for child in root.children if child.dep_ in {"aux", "auxpass"} and child.i < root.i), None)
    if helper is None and root.lemma_ == "be":
        helper = root
    before, rest = (
        parse[:start].text.strip(" ,"),
        [word for word in parse[start:] if helper is None or word.i != helper.i],
    )
    if helper is not None:
        return _ask(helper.text.capitalize(), _text(rest), before)
    support = {"VBD": "Did", "VBZ": "Does"}.get(root.tag_, "Do")
    return _ask(support, _text(rest).replace(root.text, root.lemma_, 1), before)


def _who_or_what(parse: Parse) -> str:
    """Turn a statement into a question for its subject: "Lee approves trips." -> "Who approves trips?"."""
    root = next(sentence.root for sentence in parse.sents)
    subject = next((child for child in root.children if child.dep_ in SUBJECTS and child.i < root.i), None)
    if subject is None:
        return _ask("What is said about", parse.text)
    words = list(subject.subtree)
    pronoun = "Who" if any(word.ent_type_ == "PERSON" for word in words) else "What"
    return _ask(pronoun, parse[max(word.i for word in words) + 1 :].text)


def _text(words: Sequence[ParsedWord]) -> str:
    return "".join(word.text_with_ws for word in words)


def _ask(*parts: str) -> str:
    """Join parts into a question.

    >>> _ask("Is", "the office open. ", "")
    'Is the office open?'
    """
    return " ".join(stripped for part in parts if (stripped := part.strip(" .,;:!"))) + "?"
