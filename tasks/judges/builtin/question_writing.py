"""Questions that a response would answer, made from its own words, to be compared with the question that was asked."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import cycle, islice

from tasks.judges.builtin.cleaning import clean, is_empty_talk, is_evasive
from tasks.recognizers.spacy_pipeline import Parse, ParsedWord, SpacyPipeline

_SUBJECTS = frozenset({"nsubj", "nsubjpass", "csubj", "csubjpass", "expl"})
_SENTENCES_USED = 3
_TOPICS_USED = 6
_EVASIVE_SHARE = 0.5


@dataclass(frozen=True, slots=True)
class RegeneratedQuestions:
    """What a response answers.

    Args:
        questions: distinct questions, the closest to what the response says first.
        noncommittal: the response avoids an answer.
    """

    questions: tuple[str, ...]
    noncommittal: bool


def regenerate(responses: Sequence[str], counts: Sequence[int], pipeline: SpacyPipeline) -> list[RegeneratedQuestions]:
    """For each response, as many questions as wanted, and whether the response avoids an answer.

    The questions keep the response's words: its first sentences turned into yes-no questions, and a question about
    its topics. A response too short for that many distinct questions has some of them twice.
    """
    sentences = [[clean(sentence) for sentence in found] for found in pipeline.sentences(responses)]
    kept = [
        [sentence for sentence in found if not is_empty_talk(sentence)] or [sentence for sentence in found if sentence]
        for found in sentences
    ]
    parses = iter(pipeline.parse([sentence for found in kept for sentence in found]))
    results = []
    for response, found, own, count in zip(responses, sentences, kept, counts, strict=True):
        asked = list(dict.fromkeys(_questions([next(parses) for _ in own], response)))
        results.append(RegeneratedQuestions(tuple(islice(cycle(asked), count)), _is_noncommittal(found)))
    return results


def _questions(parses: Sequence[Parse], response: str) -> Iterator[str]:
    """Questions in the order in which they are wanted."""
    topics = list(dict.fromkeys(chunk.text for parse in parses for chunk in parse.noun_chunks if _names_a_topic(chunk)))
    for parse in parses[: _SENTENCES_USED - 1]:
        yield _yes_no(parse)
    yield f"What about {', '.join(topics[:_TOPICS_USED]) or ' '.join(response.split())}?"
    yield from (_who_or_what(parse) for parse in parses[:_SENTENCES_USED])
    yield from (_yes_no(parse) for parse in parses[_SENTENCES_USED - 1 : _SENTENCES_USED])
    yield from (f"What is known about {topic}?" for topic in topics)


def _names_a_topic(chunk: Iterable[ParsedWord]) -> bool:
    return any(word.pos_ in {"NOUN", "PROPN", "NUM"} for word in chunk)


def _yes_no(parse: Parse) -> str:
    """The statement as a question: "Staff get a bonus." -> "Do Staff get a bonus?"."""
    root = next(sentence.root for sentence in parse.sents)
    subject = next((child for child in root.children if child.dep_ in _SUBJECTS), None)
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
    """A question for the subject: "Lee approves trips." -> "Who approves trips?"."""
    root = next(sentence.root for sentence in parse.sents)
    subject = next((child for child in root.children if child.dep_ in _SUBJECTS and child.i < root.i), None)
    if subject is None:
        return _ask("What is said about", parse.text)
    words = list(subject.subtree)
    pronoun = "Who" if any(word.ent_type_ == "PERSON" for word in words) else "What"
    return _ask(pronoun, parse[max(word.i for word in words) + 1 :].text)


def _text(words: Sequence[ParsedWord]) -> str:
    return "".join(word.text_with_ws for word in words)


def _ask(*parts: str) -> str:
    """The parts as a question.

    >>> _ask("Is", "the office open. ", "")
    'Is the office open?'
    """
    return " ".join(stripped for part in parts if (stripped := part.strip(" .,;:!"))) + "?"


def _is_noncommittal(sentences: Sequence[str]) -> bool:
    """Whether at least half of what a response says, by length, avoids an answer."""
    said = [sentence for sentence in sentences if is_evasive(sentence) or not is_empty_talk(sentence)]
    evasive = sum(len(sentence) for sentence in said if is_evasive(sentence))
    return evasive > 0 and evasive >= _EVASIVE_SHARE * sum(map(len, said))
