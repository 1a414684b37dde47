"""Properties of citation markers: what is cut, what is left, and where it was, whatever a response cites and how."""

import re
import time

from hypothesis import example, given
from hypothesis import strategies as st

from metric_core.claims.citation_forms import FORMS
from metric_core.claims.citations import find_citations, strip_citations

IDS = ("kb-1", "kb-2", "https://example.org/a")
PASSAGES = 4
_IN_SENTENCE = [form.example for form in FORMS if form.name not in ("link", "url", "superscript", "parenthesis")]
_NUMBERS = ["[1]", "[2]", "[1, 3]", "[1-3]", "[2 and 4]", "[3, p. 7]", "[kb-1]", "[Docs 1, 2]"]
markers = st.sampled_from([*_IN_SENTENCE, *_NUMBERS])
groups = st.lists(markers, min_size=1, max_size=3).flatmap(
    lambda found: st.sampled_from(["", " ", ", ", " and ", "; ", ", and ", " und "]).map(lambda mark: mark.join(found))
)
wrapped = st.tuples(
    st.sampled_from(
        [
            *("{}", "({})", "(see {})", "**{}**", "*{}*", "(cf. {})", "(see also {} for more)", "(Source: {})"),
            *("according to {}", "(siehe {})", "(voir {})", "(v\u00e9ase {})", "(\u0926\u0947\u0916\u0947\u0902 {})"),
        ]
    ),
    groups,
).map(lambda parts: parts[0].format(parts[1]))
WORDS = ["rain", "falls", "Cork", "the", "town", "snow", "2021", "5", "hill,", "bleibt", "lluvia"]
words = (
    st.lists(st.sampled_from(WORDS), min_size=2, max_size=6).map(" ".join).map(lambda text: f"So {text.rstrip(',')}")
)
sentences = st.tuples(
    words,
    st.one_of(st.just(""), wrapped.map(lambda cut: f" {cut}")),
    st.sampled_from([".", "!", ""]),
    st.one_of(st.just(""), wrapped.map(lambda cut: f" {cut}")),
)
OTHERS = [
    *("x[0]", "row[2]", "the interval [0, 1]", "lies in [0, 1]", "values in [1, 3]", "my_list[3]", "m[i][1]", "[sic]"),
    *(
        "a \u2208 [1, 2]",
        "`args[1]`",
        "$y = [1]$",
        "[2021]",
        "[1,000]",
        "the [1, 5] range",
        "[Figure 2]",
        "[[1, 2], [3, 4]]",
    ),
    *("[911](tel:911)", "[0, 1]", "[0, 255]", "df[1].name", "(7\u20135)", "in [10, 20]"),
]
DEBRIS = re.compile(
    r"\(\s*\)|\[\s*\]|\*\*\*\*|\(\s*(?:see|cf|and|voir|siehe)|(?:and|und|see|according to|Source:)\s*(?:[.!)]|$)"
    r"|,\s*[,.!)]|\S  \S|\.\.|\s[.!]"
)


def _is_balanced(text: str) -> bool:
    return all(text.count(opening) == text.count(closing) for opening, closing in ("()", "[]", "{}", "<>"))


@given(st.lists(sentences, min_size=1, max_size=4))
@example([("So it rains", " [1], [2] and [3]", ".", "")])
def test_cutting_leaves_the_text_as_if_it_had_no_markers(parts: list[tuple[str, str, str, str]]) -> None:
    text = "\n".join("".join(part) for part in parts)
    stripped = strip_citations(text, IDS, passages=PASSAGES)
    assert stripped.text == "\n".join(said + stop for said, _, stop, _ in parts)
    assert not DEBRIS.search(stripped.text)
    assert _is_balanced(stripped.text)
    assert strip_citations(stripped.text, IDS, passages=PASSAGES).text == stripped.text


@given(
    st.lists(st.one_of(st.sampled_from([*WORDS, *OTHERS, ".", "\n", "  ", "\u00a0"]), st.text(max_size=5)), max_size=12)
)
def test_a_text_without_citations_is_unchanged(parts: list[str]) -> None:
    text = " ".join(parts)
    stripped = strip_citations(text, IDS, passages=PASSAGES)
    if not find_citations(text, IDS, passages=PASSAGES):
        assert stripped.text == text
        assert stripped.citations == ()
    assert all(found.start < found.end <= len(text) for found in find_citations(text, IDS))


@given(st.lists(st.sampled_from([*WORDS, *OTHERS[:8], ".", "\n", ","]), max_size=12))
def test_intervals_and_indices_are_no_citations(parts: list[str]) -> None:
    text = " ".join(parts)
    assert find_citations(text, IDS, passages=PASSAGES) == []


@given(st.lists(sentences, min_size=1, max_size=3), st.text(alphabet="[](),.;1 \n*a\u00b9\u0967", max_size=30))
def test_positions_lead_back_to_the_original(parts: list[tuple[str, str, str, str]], noise: str) -> None:
    text = "\n".join("".join(part) for part in parts) + noise
    stripped = strip_citations(text, IDS, passages=PASSAGES)
    assert all(text[stripped.origin(i)] == character for i, character in enumerate(stripped.text))
    origins = [stripped.origin(i) for i in range(len(stripped.text))]
    assert origins == sorted(set(origins))
    found = find_citations(text, IDS, passages=PASSAGES)
    assert [labels for _, labels in stripped.citations] == [citation.labels for citation in found]
    for (position, _), citation in zip(stripped.citations, found, strict=True):
        assert position == 0 or stripped.origin(position - 1) < max(citation.end, 1)
        assert position == len(stripped.text) or stripped.origin(position) >= citation.start


@given(st.lists(sentences, min_size=1, max_size=3), st.sampled_from(OTHERS), st.data())
def test_what_is_no_citation_changes_no_citation(
    parts: list[tuple[str, str, str, str]], other: str, data: st.DataObject
) -> None:
    text = "\n".join("".join(part) for part in parts)
    found = find_citations(text, IDS, passages=PASSAGES)
    spans = [(citation.start, citation.end) for citation in found]
    places = [
        match.end()
        for match in re.finditer(rf" (?=(?:{'|'.join(WORDS)})\b)", text)
        if not any(start <= match.end() <= end for start, end in spans)
    ]
    place = data.draw(st.sampled_from([0, *places]))
    longer = f"{text[:place]}{other} {text[place:]}"
    assert [each.labels for each in find_citations(longer, IDS, passages=PASSAGES)] == [each.labels for each in found]


UNITS = [
    *(
        "[",
        "(",
        "[1]",
        "[0]",
        " [1, 2]",
        "x[0] ",
        "[[",
        "[[1],",
        "[1,",
        "[a",
        "\u00b9",
        "`",
        "` ",
        "$a ",
        "\\[",
        "\\(",
        "\u3010",
    ),
    *("https://example.org/a ", "[t](https://example.org/a) ", "[1](https://x", "Sources:\n", "Sources:\n- a\n"),
    *(
        "References:\n1. a\n",
        "- References\n",
        "[1]: a.pdf\n",
        "\n",
        " ",
        "(see [1]) ",
        "**[1]** ",
        "<sup>1</sup>",
        "<code>",
    ),
    *("```\n", "\\cite{", "[a.pdf", "[doc-1, ", "[1] and ", "(1) ", "the range [0, 1] ", "see ", "[@a", "[kb-1] "),
]
"""Pieces that, repeated, a careless expression would read again from every place."""


def test_time_grows_with_the_length_of_the_text() -> None:
    for unit in UNITS:
        text = "a " + unit * (25_000 // len(unit))
        began = time.process_time()
        strip_citations(text, IDS, passages=PASSAGES)
        assert time.process_time() - began < 1.25, unit  # linear: a sixteenth of a second
