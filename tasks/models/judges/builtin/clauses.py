"""Split a parsed sentence into clauses that can stand alone as sentences."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from tasks.models.recognizers.spacy_pipeline import Parse, ParsedWord

_SUBJECTS = frozenset({"nsubj", "nsubjpass", "csubj", "csubjpass", "expl"})
_AUXILIARIES = frozenset({"aux", "auxpass"})
_FINITE_TAGS = frozenset({"VBZ", "VBP", "VBD", "MD"})
_VERBS = frozenset({"VERB", "AUX"})
_JOINS = frozenset({"and", "but"})
_BARE = _SUBJECTS | _AUXILIARIES | {"cc", "conj", "punct", "neg"}


def is_clause(parse: Parse) -> bool:
    """Return whether a text has a finite verb or is a command, unlike a heading or a fragment."""
    return any(_is_finite(sentence.root) for sentence in parse.sents) or is_command(parse)


def is_command(parse: Parse) -> bool:
    """Return whether a text starts as a command, such as "Ask your manager."."""
    root = next((sentence.root for sentence in parse.sents), None)
    return root is not None and root.tag_ == "VB" and _child(root, _SUBJECTS | _AUXILIARIES) is None


def split_clauses(parse: Parse) -> list[str]:
    """Return the clauses of a sentence that can stand alone, as sentences in order, or the whole sentence.

    - Each coordinated verb gets the subject, the auxiliaries and the words before the subject.
    - A relative clause (which, who) or a description of a name, set off by commas, becomes a sentence.
    """
    sentences = list(parse.sents)
    if len(sentences) != 1:
        return [_sentence(parse)]
    root = sentences[0].root
    asides = _find_asides(parse, root)
    left_out = {word for aside in asides for word in aside.removed}
    verbs = _joined_verbs(root)
    clauses: list[str] = []
    for position, verb in enumerate(verbs):
        words = _subtree(verb) if position else set(range(len(parse)))
        later = _subtree(verbs[position + 1]) if position + 1 < len(verbs) else set()
        joins = {child.i for child in verb.children if child.dep_ == "cc"} if later else set()
        shared = _shared_subject(root, verb) if position else set()
        clauses.append(_sentence(parse[i] for i in sorted((words | shared) - later - joins - left_out)))
    return [*clauses, *(aside.claim for aside in asides)]


def _child(word: ParsedWord, dependencies: Iterable[str]) -> ParsedWord | None:
    return next((child for child in word.children if child.dep_ in dependencies), None)


def _subtree(word: ParsedWord) -> set[int]:
    return {part.i for part in word.subtree}


def _is_finite(verb: ParsedWord) -> bool:
    if verb.pos_ not in _VERBS:
        return False
    return verb.tag_ in _FINITE_TAGS or any(
        child.tag_ in _FINITE_TAGS for child in verb.children if child.dep_ in _AUXILIARIES
    )


def _joined_verbs(root: ParsedWord) -> list[ParsedWord]:
    """Return the main verbs joined by "and" or "but", or only the root if the sentence cannot be split there."""
    verbs = [root]
    joins: list[str] = []
    while (verb := _child(verbs[-1], {"conj"})) is not None:
        joins.extend(child.lower_ for child in verbs[-1].children if child.dep_ == "cc")
        verbs.append(verb)
    subject = _child(root, _SUBJECTS)
    condition_behind = any(child.dep_ == "advcl" and child.i > verbs[-1].i for child in verbs[-1].children)
    parts = (
        len(verbs) > 1
        and subject is not None
        and subject.i < root.i
        and bool(joins)
        and _JOINS.issuperset(joins)
        and not condition_behind
        and all(_stands_alone(verb, root) for verb in verbs)
    )
    return verbs if parts else [root]


def _stands_alone(verb: ParsedWord, root: ParsedWord) -> bool:
    """Return whether a verb can form a separate sentence with the root's subject and auxiliaries."""
    if verb.pos_ not in _VERBS or not any(child.dep_ not in _BARE for child in verb.children):
        return False
    if _child(verb, _SUBJECTS) is not None or _is_finite(verb):
        return _is_finite(verb)
    if _child(root, _AUXILIARIES) is not None:
        # A participle with an object is not passive, so the root's "was" does not fit it.
        return verb.tag_ == root.tag_ and not (verb.tag_ == "VBN" and _child(verb, {"dobj"}))
    return verb.tag_ == "VB" and root.tag_ == "VBP"


def _shared_subject(root: ParsedWord, verb: ParsedWord) -> set[int]:
    """Return the words of the root that a joined verb shares: the subject, the words before it and the auxiliaries."""
    subject = _child(root, _SUBJECTS)
    if subject is None or _child(verb, _SUBJECTS) is not None:
        return set()
    words = _subtree(subject)
    words |= {i for i in range(min(words)) if i in _subtree(root)}
    if not _is_finite(verb):
        words |= {child.i for child in root.children if child.dep_ in _AUXILIARIES and child.i < root.i}
    return words


@dataclass(frozen=True, slots=True)
class _Aside:
    """A clause between commas, as a sentence, with the positions of the words to remove from the main sentence."""

    claim: str
    removed: frozenset[int] = field(default_factory=frozenset)


def _find_asides(parse: Parse, root: ParsedWord) -> list[_Aside]:
    asides = []
    for word in parse:
        start = word.left_edge.i
        if start == 0 or parse[start - 1].text != ",":
            continue
        # Checked before collecting the subtree, which takes minutes for thousands of words without a full stop.
        linked = _relative_link(word) if word.dep_ == "relcl" else _description_link(word, root)
        if linked is None:
            continue
        inside = _subtree(word)
        end = max(inside) + 1
        about = sorted(i for i in _subtree(word.head) - inside if i < start - 1)
        if root.i in inside or not about or len(inside) != end - start:
            continue
        verb, dropped = linked
        claim = _sentence([*(parse[i] for i in about)], verb, [parse[i] for i in sorted(inside - dropped)])
        closing = {end} if end < len(parse) and parse[end].text == "," else set()
        asides.append(_Aside(claim, frozenset(inside | {start - 1} | closing)))
    return asides


def _relative_link(verb: ParsedWord) -> tuple[str, set[int]] | None:
    """Return an empty linking verb and the position of the pronoun to drop, for a clause with which or who."""
    pronoun = _child(verb, {"nsubj", "nsubjpass"})
    if pronoun is None or pronoun.lower_ not in {"which", "who"} or not _is_finite(verb):
        return None
    safe = verb.head.pos_ == "PROPN" or (verb.head.pos_ == "NOUN" and verb.head.dep_ in _SUBJECTS)
    return ("", {pronoun.i}) if safe else None


def _description_link(noun: ParsedWord, root: ParsedWord) -> tuple[str, set[int]] | None:
    """Return the linking verb for a description after a name, and no words to drop."""
    if noun.dep_ != "appos" or noun.head.pos_ != "PROPN" or noun.pos_ not in {"NOUN", "PROPN"}:
        return None
    if _child(noun, {"det", "poss"}) is None or _child(noun, {"cc", "conj"}) is not None:
        return None
    past = root.tag_ == "VBD"
    plural = noun.tag_ in {"NNS", "NNPS"}
    return ("were" if plural else "was") if past else ("are" if plural else "is"), set()


def _sentence(words: Iterable[ParsedWord], verb: str = "", rest: Iterable[ParsedWord] = ()) -> str:
    """Join words, a linking verb and more words into a sentence."""
    return as_sentence(" ".join(part for part in (_join(words), verb, _join(rest)) if part))


def _join(words: Iterable[ParsedWord]) -> str:
    """Join words with the white space of the text, and with a space in place of omitted words."""
    text, following = "", -1
    for word in words:
        text += " " * (word.i != following and following >= 0) + word.text_with_ws
        following = word.i + 1
    return " ".join(text.split()).replace(" ,", ",").replace(" .", ".").strip(" ,;")


def as_sentence(text: str) -> str:
    """Return a text with an initial capital letter and a full stop.

    >>> as_sentence("staff get a bonus")
    'Staff get a bonus.'
    """
    return text[:1].upper() + text[1:] + ("" if text.endswith((".", "!", "?", ":", '."')) else ".")
