"""Citation markers: which are found, what they cite, and what is left of the text."""

import re
import time

import pytest

from metric_core.claims.citation_pattern import LONGEST_PATTERN, find_by_pattern, pattern_problem
from metric_core.claims.citations import find_citations, strip_citations
from metric_core.claims.cited_contexts import cited_contexts, first_number
from metric_core.claims.unread_markers import find_unread_marker
from metric_core.records import Sample

FILES = ("hr/leave.md#1", "hr/leave.md#2", "it.md", "fr/leave.md#1")


def test_markers_are_no_part_of_the_text() -> None:
    cases: list[tuple[str, str, list[tuple[str, ...]]]] = [
        ("It rains [1].", "It rains.", [("1",)]),
        ("It rains. [1]", "It rains.", [("1",)]),
        ("It rains.[1][2]", "It rains.", [("1",), ("2",)]),
        ("It rains [1], [2] and [3].", "It rains.", [("1",), ("2",), ("3",)]),
        ("It rains ([1]; [2]).", "It rains.", [("1",), ("2",)]),
        ("It rains [1]–[3].", "It rains.", [("1", "2", "3")]),  # noqa: RUF001
        ("It rains [1] to [3].", "It rains.", [("1", "2", "3")]),
        ("下雨（参见[1]和[2]）。", "下雨。", [("1",), ("2",)]),  # noqa: RUF001
        ("It rains [1-3, 5].", "It rains.", [("1", "2", "3", "5")]),
        ("It rains [[1]](https://x.y/z).", "It rains.", [("1",)]),
        ("It rains<sup>2</sup>.", "It rains.", [("2",)]),
        ("It rains [doc-1, doc-4].", "It rains.", [("doc-1", "doc-4")]),
        ("It rains [intro, x9].", "It rains.", [("intro", "x9")]),
        ("It rains【4:0†leave.md】.", "It rains.", [("4:0†leave.md",)]),
        ("雨が降る[1]。雪が降る。[2]", "雨が降る。雪が降る。", [("1",), ("2",)]),
        ("下雨［1］、［2］。", "下雨。", [("1",), ("2",)]),  # noqa: RUF001
        ("تمطر [١].", "تمطر.", [("١",)]),  # noqa: RUF001
        ("Es regnet [Quelle 2]. Il pleut [1, 2] !", "Es regnet. Il pleut !", [("Quelle 2",), ("1", "2")]),
        ("อากาศดี [1] ฝนตก [2]", "อากาศดี ฝนตก", [("1",), ("2",)]),
    ]
    for text, stripped, labels in cases:
        ids = ("intro", "x9")
        assert strip_citations(text, ids).text == stripped, (text, stripped, labels)
        assert [citation.labels for citation in find_citations(text, ids)] == labels, (text, stripped, labels)
        assert strip_citations(stripped, ids).text == stripped, (text, stripped, labels)


@pytest.mark.parametrize(
    "notes",
    [
        "[^a]: hr/leave.md#2",
        "[^a]: See hr/leave.md#2, page 3.",
        "Sources:\n[^a]: hr/leave.md#2",
        "**References**\n- [^a]: hr/leave.md#2",
    ],
)
def test_footnotes_cite_what_they_are_defined_as(notes: str) -> None:
    text = f"It rains.[^a]\n\n{notes}"
    found = find_citations(text, FILES)
    assert [citation.labels for citation in found] == [("hr/leave.md#2",), ()]
    assert strip_citations(text, FILES).text.strip() == "It rains."


def test_a_list_of_sources_is_no_text_and_says_what_numbers_mean() -> None:
    text = "It rains [1]. It is dry [2]. It snows [3].\n\nSources:\n[1] it.md\n[2] hr/leave.md#2\n[3] Weather report\n"
    stripped = strip_citations(text, FILES)
    assert [labels for _, labels in stripped.citations if labels] == [("it.md",), ("hr/leave.md#2",), ("3",)]
    assert stripped.text.strip() == "It rains. It is dry. It snows."


def test_a_line_with_words_of_its_own_is_a_statement_without_a_heading() -> None:
    stripped = strip_citations("It rains [1].\n\n[1] It snows.\n[2] it.md", FILES)
    assert [labels for _, labels in stripped.citations if labels] == [("1",), ("1",)]
    assert stripped.text.strip() == "It rains.\n\nIt snows."


def test_a_definition_without_a_name_leaves_the_number() -> None:
    found = find_citations("It rains [2].\n[2]: The weather report of May.\n", FILES)
    assert [citation.labels for citation in found] == [("2",), ()]


@pytest.mark.parametrize(
    "text",
    [
        "The risk fell (95 % CI [1, 4]).",
        "The risk fell (95% confidence interval: [1, 4]).",
        "The stay took 2 days (IQR [2, 3]).",
        "Das Risiko sank (95-%-Konfidenzintervall [1, 4]).",
        "The OR was 1.8 [1, 3] in men.",
        "HR = 2 [1, 4].",
        "A median of 2 [1-3] days.",
        "Ages [2-3] may join.",
        "Children aged [2-3] may join.",
        "See pages [2-3].",
        "In stages [1-3] it grows.",
    ],
)
def test_intervals_of_statistics_and_ranges_of_ages_are_no_citations(text: str) -> None:
    assert find_citations(text, passages=4) == []
    assert strip_citations(f"It rains [1]. {text}", passages=4).text == f"It rains. {text}"


@pytest.mark.parametrize(
    "text",
    [
        "Recent studies [2-3] agree.",
        "It lasted for years [2-3].",
        "In recent years [2-3], it rained.",
        "It has three stages [2-3].",
        "It took hours [2-3] to cook.",
        "The CI pipeline failed [2, 3].",
        "It rains in cities [2, 3].",
    ],
)
def test_ranges_behind_other_words_are_citations(text: str) -> None:
    assert [each.labels for each in find_citations(text, passages=4)] == [("2", "3")]


@pytest.mark.parametrize(
    ("text", "labels"),
    [
        ("The sun\u00b9 shines.", [("1",)]),
        ("The sun\u00b9,\u00b2 shines.", [("1", "2")]),
        ("It is so\u00b9, \u00b2.", [("1", "2")]),
        ("The day\u00b2, the EU\u00b3.", [("2",), ("3",)]),
        ("It grew by 5%\u00b9.", [("1",)]),
        ("The shop\u2019s\u00b9 door.", [("1",)]),
        ("\u5929\u6c14\u00b9\u3002", [("1",)]),
        ("It has 5 m\u00b2, 7 km\u00b2 or 12 in\u00b2.", []),
        ("10\u00b2,\u00b3 m, m\u00b2,\u00b3.", []),
        ("The x\u00b2 of cos\u00b2 t and \u03c3\u00b2.", []),
        ("CO\u00b2 emissions.", []),
    ],
)
def test_raised_numbers_behind_short_words(text: str, labels: list[tuple[str, ...]]) -> None:
    assert [each.labels for each in find_citations(text, passages=3)] == labels


@pytest.mark.parametrize(
    ("text", "marker"),
    [
        ("It rains {1, 2}.", "{1, 2}"),
        ("It rains <1>, it pours.", "<1>"),
        ("It rains \u27e81\u27e9.", "\u27e81\u27e9"),
        ("It rains |1|.", "|1|"),
        ("It rains^2.", "^2"),
        ('It rains <ref id="a"/>.', '<ref id="a"/>'),
        ("It rains [a].", "[a]"),
        ("It rains [Beleg-Nr. 2].", "[Beleg-Nr. 2]"),
        ("It rains (source: the handbook).", "(source: the handbook)"),
        ("It rains (Smith & Lee, 2020).", "(Smith & Lee, 2020)"),
        ("It rained in 2020\u00b9.", "\u00b9"),
        ("It rains [1], [doc-2] (Source 3) in [0, 1].", None),
        ("The set {1, x}, `x{1}`, 10\u00b2, a^2b and x[i] in (May 2020).", None),
    ],
)
def test_what_looks_like_a_marker_of_another_form_is_found(text: str, marker: str | None) -> None:
    assert find_unread_marker(text, passages=3) == marker
    if marker is not None:
        assert find_unread_marker(text, pattern=re.escape(marker), passages=3) is None


def test_labels_name_ids_files_and_numbers() -> None:
    cases: list[tuple[str, tuple[int, ...]]] = [
        ("hr/leave.md#2", (1,)),
        ("HR/Leave.md#2", (1,)),
        ("hr/leave.md", (0, 1)),
        ("leave.md", (0, 1, 3)),
        ("docs/hr/leave.md", (0, 1)),
        ("it.md#page=3", (2,)),
        ("other.md", ()),
        ("4:2†source", (2,)),
        ("4:2†it.md", (2,)),
        ("1", (0,)),
        ("[c3", ()),
        ("c3", (2,)),
        ("Passage 4", (3,)),
        ("5", ()),
        ("0", ()),
        ("١", (0,)),  # noqa: RUF001
    ]
    for label, cited in cases:
        row = Sample(retrieved_contexts=("a", "b", "c", "d"), retrieved_context_ids=FILES)
        assert cited_contexts((label,), row) == cited, (label, cited)


def test_numbers_count_from_zero_where_zero_is_cited() -> None:
    row = Sample(retrieved_contexts=("a", "b"), retrieved_context_ids=("x", "y"))
    assert first_number(("0", "1"), row) == first_number(("doc-0",), row) == first_number(("0",), Sample()) == 0
    assert first_number(("1", "2", "x-10"), row) == 1
    assert cited_contexts(("0", "1"), row, first=0) == (0, 1)
    assert first_number(("0",), Sample(retrieved_contexts=("a",), retrieved_context_ids=("0",))) == 1


def test_one_zero_does_not_move_numbers_that_reach_the_last_context() -> None:
    row = Sample(retrieved_contexts=("a", "b", "c"))
    assert first_number(("1", "3", "0", "2"), row) == 1
    assert first_number(("Source 3", "Quelle 0"), row) == 1


def test_a_url_names_the_contexts_of_its_page() -> None:
    ids = ("https://example.org/a#1", "https://www.example.org/a#2", "https://example.org/b")
    row = Sample(retrieved_contexts=("a", "b", "c"), retrieved_context_ids=ids)
    assert cited_contexts(("http://example.org/a/",), row) == (0, 1)
    assert cited_contexts((ids[1],), row) == (1,)
    assert cited_contexts(("https://example.org/1",), row) == ()


def test_an_id_goes_before_a_number() -> None:
    row = Sample(retrieved_contexts=("a", "b"), retrieved_context_ids=("2", "1"))
    assert cited_contexts(("1",), row) == (1,)


@pytest.mark.parametrize(
    ("pattern", "problem"),
    [
        ("(", "cannot be read"),
        (r"(?=x)", "no lookaround"),
        (r"(x)\1", "cannot be read"),
        ("x?", "matches the empty text"),
        ("(a)(b)", "has 2 groups"),
        ("x" * (LONGEST_PATTERN + 1), "has 201 characters; the maximum is 200"),
    ],
)
def test_patterns_that_cannot_be_used_say_why(pattern: str, problem: str) -> None:
    assert problem in str(pattern_problem(pattern))


def test_a_pattern_finds_further_markers_in_order() -> None:
    text = "Ünder it rains (see notes 1, 3)[2]. 😀 It is dry {x9}."
    found = find_citations(text, ("x9",), r"\(see notes? ([^)]+)\)|\{x9\}")
    assert [(text[each.start : each.end], each.labels) for each in found] == [
        ("(see notes 1, 3)", ("1", "3")),
        ("[2]", ("2",)),
    ]
    assert strip_citations("It rains {x9}.", ("x9",), r"\{(\w+)\}").citations == ((8, ("x9",)),)


def test_a_pattern_reads_any_text_in_linear_time() -> None:
    began = time.process_time()
    assert find_by_pattern("a" * 100_000 + "b", "(?:(a+)+)+$") == []
    assert find_by_pattern("\ud800 §1 \ue000", r"§(\d)") == [(2, 4, "1")]
    assert time.process_time() - began < 5
