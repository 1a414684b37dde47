"""Write questions without a language model: sentences with a figure or name asked for, and what a section says.

They are as good as their sentences: they use the words of the index, so that a search by words finds the evidence of
most, but not that of a title which the text does not repeat. The sentences are parsed as English.
"""

import re
from collections.abc import Iterator, Sequence

from tasks.index_questions.evidence import locate_quote
from tasks.index_questions.kinds import CLOZE, TITLE, IndexQuestionKind
from tasks.index_questions.written_question import WrittenQuestion
from tasks.models.judges.builtin.question_writing import SUBJECTS, ask_whether
from tasks.models.recognizers.spacy_pipeline import Parse, ParsedSpan, ParsedWord, SpacyPipeline
from tasks.sources.anchoring.span_places import Chunk

_WORDS = range(6, 36)
"""Number of words of a sentence that is asked about."""
_SENTENCES_OF_TITLE = 3
_STEM = 5
"""Characters by which a word of a title is looked for."""
_ALONE = frozenset({"you", "we", "everyone", "everybody", "anyone", "anybody", "whoever", "nobody", "all"})
"""Pronouns that need no sentence before them."""
_LEANS = re.compile(
    r"(?i)(?:this|that|these|those|it|they|he|she|there|then|here|such|both|either|in (?:this|that|these)|otherwise|but"
    r"|and|or|so|however|also|the same|afterwards|instead)\b"
)
"""Beginnings of a sentence that cannot be understood without the one before."""
_POINTS_BACK = re.compile(
    r"(?i)\b(?:instead|this|that (?:night|day|date|case|year|time)|these|those|the (?:latter|former))\b"
)
_HEADING = re.compile(r"\s*#{1,6}\s+(.+)")
_NUMBER = re.compile(r"(?i)(?:\d[\d.,]*|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve)(?:\s+|-)(?=[a-z])")
_QUALIFIER = re.compile(
    r"(?i)^(?:up to|at most|at least|(?:no )?(?:more|less|fewer) than|about|around|only|the first)\s+"
)
_CLOCK = re.compile(r"\d{1,2}[:.]\d\d")
_MONTH = re.compile(
    r"(?i)\b(?:january|february|march|april|may|june|july|august|september|october|november|december)\b"
)
_CURRENCIES = frozenset("€$£¥")
_SHARES = {"MONEY": "how much", "PERCENT": "what percentage"}
_COUNTS = frozenset({"QUANTITY", "DATE", "TIME", "CARDINAL"})
_JOINS = re.compile(r"[;:]")
_GAPPED = re.compile(r"\b(for|after|within|at|by|up to)\b.+\band\b.+\b\1\b")
"""A clause without its verb: "the frame for ten years and the motor for three"."""
_FRONTED = frozenset({"dobj", "attr", "oprd", "npadvmod", "prep"})
_LONGEST_PHRASE = 8


def write_plainly(
    kind: IndexQuestionKind, chunks: Sequence[Chunk], pipeline: SpacyPipeline
) -> list[WrittenQuestion | None]:
    """Return a question for each chunk; None for one without a sentence or title to ask about.

    Raises:
        ValueError: The kind needs a language model.
    """
    found = pipeline.sentences([_HEADING.sub("", chunk.text, count=1) for chunk in chunks])
    if kind is TITLE:
        return [_title_question(chunk, sentences) for chunk, sentences in zip(chunks, found, strict=True)]
    if kind is not CLOZE:
        raise ValueError(f"questions of the kind {kind.name} need a language model")
    usable = [[text for text in sentences if _is_clear_alone(text)] for sentences in found]
    parses = iter(pipeline.parse([text for sentences in usable for text in sentences]))
    return [
        _best_cloze(chunk, [next(parses) for _ in sentences]) for chunk, sentences in zip(chunks, usable, strict=True)
    ]


def _title_question(chunk: Chunk, sentences: Sequence[str]) -> WrittenQuestion | None:
    heading = _HEADING.match(chunk.text)
    title = chunk.title or (heading[1] if heading else None)
    said = [text for text in sentences if text.endswith(".")][:_SENTENCES_OF_TITLE]
    if title is None or not said or not _names(title, chunk.text):
        return None
    title = " ".join(title.split())
    topic = title if title[1:2].isupper() else title[:1].lower() + title[1:]
    return _written(TITLE, f"What is there to know about {topic}?", said, chunk)


def _names(title: str, text: str) -> bool:
    """Return whether a title names what its text is about: each long word of it, but for its ending, is in the text."""
    stems = [word[:_STEM] for word in re.findall(r"\w+", title.casefold()) if len(word) >= _STEM]
    return bool(stems) and all(stem in text.casefold() for stem in stems)


def _written(kind: IndexQuestionKind, question: str, sentences: Sequence[str], chunk: Chunk) -> WrittenQuestion | None:
    located = [locate_quote(sentence, [chunk]) for sentence in sentences]
    spans = tuple(found[1] for found in located if found is not None)
    if len(spans) < len(sentences):
        return None
    return WrittenQuestion(
        kind.name, question, " ".join(sentences), tuple(sentences), spans, written_from=(chunk.digest,)
    )


def _is_clear_alone(sentence: str) -> bool:
    return (
        sentence.endswith(".")
        and len(sentence.split()) in _WORDS
        and _LEANS.match(sentence) is None
        and _POINTS_BACK.search(sentence) is None
        and _GAPPED.search(sentence) is None
    )


def _best_cloze(chunk: Chunk, parses: Sequence[Parse]) -> WrittenQuestion | None:
    """Return the first question of the best form."""
    asked = [(*found, parse) for parse in parses for found in _clozes(parse)]
    for _, question, parse in sorted(asked, key=lambda found: found[0]):
        if (written := _written(CLOZE, question, [parse.text], chunk)) is not None:
            return written
    return None


def _clozes(parse: Parse) -> Iterator[tuple[tuple[bool, int], str]]:
    """Yield questions about the figures and names of a sentence, with their ranks: short simple sentences are first."""
    root = next(parse.sents).root
    subject = next((word for word in root.children if word.dep_ in SUBJECTS and word.i < root.i), None)
    is_one_clause = len(list(parse.sents)) == 1 and not any(word.dep_ in {"ccomp", "parataxis"} for word in parse)
    if subject is None or not is_one_clause or (subject.pos_ == "PRON" and subject.lower_ not in _ALONE):
        return
    rank = (_JOINS.search(parse.text) is not None, len(parse))
    for entity in parse.ents:
        if entity.label_ == "PERSON":
            asked = _ask_who(entity, subject, parse)
        else:
            asked = _ask_how_much(entity, subject, root, parse)
        if asked is not None:
            yield rank, _finish(asked)


def _ask_who(entity: ParsedSpan, subject: ParsedWord, parse: Parse) -> str | None:
    """Ask for the person who is the subject of a sentence, without what is said about the person in between."""
    if entity.root.i != subject.i or entity.start > 0:
        return None
    return f"Who {parse[max(word.i for word in subject.subtree) + 1 :].text.lstrip(' ,')}"


def _ask_how_much(entity: ParsedSpan, subject: ParsedWord, root: ParsedWord, parse: Parse) -> str | None:
    """Ask for a figure; the question begins with it, or with what the sentence says first."""
    text = entity.text
    if entity.start > 0 and parse[entity.start - 1].text in _CURRENCIES:
        text = parse[entity.start - 1].text + text
    asked_for = _QUALIFIER.sub("", text)
    word = _question_word(asked_for, entity, parse)
    if word is None or parse.text.count(asked_for) != 1:
        return None
    if entity.root.i in {each.i for each in subject.subtree}:
        is_first = min(each.i for each in subject.subtree) == 0
        return parse.text.replace(asked_for, word, 1) if is_first else None
    phrase = _phrase(entity.root, root)
    has_second_verb = any(child.dep_ == "conj" for child in root.children)
    if phrase is None or has_second_verb or text not in phrase:
        return None
    start = min(each.i for each in subject.subtree)
    first = parse[:start].text.strip(" ,")
    whether = ask_whether(parse).rstrip("?").removesuffix(first).rstrip(" ,")
    if parse[start].pos_ != "PROPN" and not parse[start].ent_type_ and start == 0:
        whether = whether.replace(parse[0].text, parse[0].text[:1].lower() + parse[0].text[1:], 1)
    helper, found, rest = whether.partition(phrase)
    if not found or phrase in first:
        return None
    fronted = phrase.replace(asked_for, word, 1)
    return f"{first}{', ' if first else ''}{fronted} {helper[:1].lower()}{helper[1:]}{rest}"


def _question_word(text: str, entity: ParsedSpan, parse: Parse) -> str | None:
    """Return the words that ask for a figure; None for one that cannot be asked for."""
    before, after = parse[: entity.start], parse[entity.end :]
    if " and " in text or (len(before) and before[-1].lower_ in {"a", "an"}):
        return None
    if entity.label_ in _SHARES or text[:1] in _CURRENCIES:
        return _SHARES.get(entity.label_, "how much")
    word = None
    if entity.label_ in _COUNTS:
        if _CLOCK.fullmatch(text):
            word = "what time"
        elif _MONTH.search(text):
            word = "what date"
        elif _NUMBER.match(text):
            word = _NUMBER.sub("how many ", text, count=1)
        elif entity.label_ == "CARDINAL" and len(after) and after[0].pos_ in {"NOUN", "ADJ"}:
            word = "how many"
    return word


def _phrase(word: ParsedWord, root: ParsedWord) -> str | None:
    """Return the phrase with a word that a question about it begins with; None if it must stay in its place."""
    while word.head.i not in {root.i, word.i}:
        if word.head.dep_ in {"conj", "relcl", "advcl", "acl", "xcomp"}:
            return None
        word = word.head
    words = list(word.subtree)
    if word.dep_ not in _FRONTED or len(words) > _LONGEST_PHRASE:
        return None
    if any(each.dep_ in {"relcl", "cc"} for each in words):
        return None
    return word.doc[words[0].i : words[-1].i + 1].text


def _finish(question: str) -> str:
    text = re.sub(r"\s*([,.;])[\s,]*(?=[\s,])", r"\1", " ".join(question.split())).rstrip(" .,?")
    return f"{text[:1].upper()}{text[1:]}?"
