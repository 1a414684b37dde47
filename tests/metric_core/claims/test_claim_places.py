"""Words are found where a pattern with white space between them is found, without compiling one."""

import re

from hypothesis import example, given
from hypothesis import strategies as st

from metric_core.claims.citations import strip_citations
from metric_core.claims.claim_places import locate_sentences, place_claims

SPACES = st.sampled_from([" ", "  ", "\n", "\u00a0", "\x1c", ""])
WORDS = st.lists(st.sampled_from(["a", "ab", "b", "ba", "A.", "K\u212a", "\u017f"]), max_size=4)


def slowly(text: str, sentences: list[str]) -> list[tuple[int, int]]:
    spans: list[tuple[int, int]] = []
    done = 0
    for sentence in sentences:
        match = re.compile(r"\s+".join(map(re.escape, sentence.split()))).search(text, done)
        spans.append((done, done) if match is None else match.span())
        done = spans[-1][1]
    return spans


@given(st.lists(st.tuples(st.sampled_from(["a", "ab", "b", "ba", "A."]), SPACES)), st.lists(WORDS.map(" ".join)))
@example([("a", "\n"), ("b", " "), ("a", " "), ("b", "")], ["a b", "a  b", "", "c"])
def test_sentences_are_found_as_a_pattern_finds_them(parts: list[tuple[str, str]], sentences: list[str]) -> None:
    text = "".join(word + space for word, space in parts)
    assert locate_sentences(text, sentences) == slowly(text, sentences)


@given(st.lists(st.tuples(st.sampled_from(["rain", "Rain", "or", "so"]), SPACES), min_size=1), WORDS)
def test_the_words_of_a_claim_are_found_in_any_case(parts: list[tuple[str, str]], more: list[str]) -> None:
    text = "".join(word + space for word, space in parts)
    claim = "rain Or"
    pattern = re.compile(r"rain\s+or", re.IGNORECASE)
    for whole in (text, f"{text} {' '.join(more)}"):  # the second is not ASCII: it takes the pattern
        (place,) = place_claims(strip_citations(whole), [claim], [(0, len(whole))])
        found = pattern.search(whole)
        if place is not None and found is not None:
            assert (place.start, place.end) == found.span()
