"""Notes and lists of references are no statements, and say what the labels mean."""

import pytest

from metric_core.claims.citations import find_citations, strip_citations
from metric_core.claims.reference_lists import find_references

IDS = ("hr/leave.md", "https://example.org/it", "kb-10")


ENTRIES = (
    "1. Title\n2. Another title",
    "1) Title\n2) Another title",
    "[1] Title\n[2] Another title",
    "[1]: Title\n[2]: Another title",
    "- Title\n- Another title",
    "* [1] Title\n* [2] Another title",
    "\u00b9 Title\n\u00b2 Another title",
    "\n1. Title,\n   in two lines\n\n2. Another title\n",
    "- https://example.org/x\n- guide.pdf",
    "<https://example.org/x>",
)


def test_a_list_of_references_is_no_statement() -> None:
    for heading in [
        *(
            "References:",
            "## References",
            "**References**",
            "Sources",
            "\U0001f4da **Sources:**",
            "Bibliography",
            "Works Cited",
        ),
        *("Quellen:", "### Quellenangaben", "Literatur", "Literaturverzeichnis", "Referenzen:"),
        *("R\u00e9f\u00e9rences :", "**Bibliographie**", "Fuentes:", "Referencias", "Bibliograf\u00eda:"),
        *("\u0938\u0902\u0926\u0930\u094d\u092d:", "**\u0938\u094d\u0930\u094b\u0924**"),
        *("---\n**Sources**:", "REFERENCES"),
    ]:
        for entries in ENTRIES:
            stripped = strip_citations(f"It rains [1].\n\n{heading}\n{entries}")
            assert stripped.text.strip() == "It rains.", heading
            assert [labels for _, labels in stripped.citations if labels] == [("1",)], heading


@pytest.mark.parametrize(
    "text",
    [
        "Energy has many sources.\n\nSources:\n1. Sun\n2. Wind",
        "Energy has many sources [1].\n\nSources:\n- Sun\n- Wind\n\nBoth are free.",
        "References:\n1. Anna, her last boss\n2. Ben",
        "Call our references.\n\nReferences are needed.\n1. Ask them.",
        "It rains.\n\nReferences:",
        "```\nIt rains.\nReferences:\n1. Title\n```",
    ],
)
def test_other_lists_are_statements(text: str) -> None:
    assert strip_citations(text).text == text.replace(" [1]", "")


def test_the_text_behind_the_list_stays() -> None:
    text = "It rains [1].\n\nReferences:\n1. Title\n\nI hope this helps!\n\n- It snows [2]."
    assert strip_citations(text).text == "It rains.\n\n\n\nI hope this helps!\n\n- It snows."
    assert strip_citations("A [1].\n\nReferences:\n1. Title\n\n- It snows.").text == "A.\n\n\n\n- It snows."


@pytest.mark.parametrize(
    ("entry", "label"),
    [
        ("1. hr/leave.md", "hr/leave.md"),
        ("1. Leave, in hr/leave.md, page 3", "hr/leave.md"),
        ("[1] [IT](https://www.example.org/it/)", "https://www.example.org/it/"),
        ("1. `guide.pdf`, page 3", "guide.pdf"),
        ("1. The record kb-10", "kb-10"),
        ("1. The record of kb-100, in 10 lines", "1"),
    ],
)
def test_a_list_says_what_its_numbers_mean(entry: str, label: str) -> None:
    found = find_citations(f"It rains [1].\n\nReferences:\n{entry}", IDS)
    assert [citation.labels for citation in found] == [(label,), ()]


def test_notes_go_on_in_indented_lines() -> None:
    text = "It rains.[^a]\n\n[^a]: See the report,\n    page 3.\nIt snows."
    assert find_references(text).spans == ((15, 48),)
    assert strip_citations(text).text == "It rains.\n\n\nIt snows."


@pytest.mark.parametrize(
    "line",
    [
        "Sources: guide.pdf, it.md",
        "**Quellen:** hr/leave.md",
        "Source: https://example.org/x",
        "References: [1] Title, [2] Another title",
    ],
)
def test_a_list_in_the_line_of_its_heading_is_no_statement(line: str) -> None:
    assert strip_citations(f"It rains [1].\n\n{line}", IDS).text.strip() == "It rains."


@pytest.mark.parametrize("line", ["Sources: the sun, the wind", "Referenced work: it.md", "Source: unknown"])
def test_a_line_with_other_words_is_a_statement(line: str) -> None:
    assert strip_citations(f"It rains [1].\n\n{line}", IDS).text == f"It rains.\n\n{line}"


def test_the_address_of_a_context_behind_a_heading_is_a_marker() -> None:
    stripped = strip_citations("It rains.\nSource: https://example.org/it", IDS)
    assert (stripped.text.strip(), stripped.citations) == ("It rains.", ((10, ("https://example.org/it",)),))
