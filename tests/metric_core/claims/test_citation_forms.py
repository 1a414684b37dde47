"""Every form in the table is read, alone, in lists and in ranges, wherever it stands in a sentence."""

from pathlib import Path
from random import Random

import pytest

from metric_core.claims import citation_forms, citations
from metric_core.claims.citation_forms import FORMS, CitationForm, find_forms, may_hold_forms
from metric_core.claims.citations import find_citations, strip_citations

PAGE = Path(__file__).parents[3] / "docs" / "design" / "citation-markers.md"
URL = "https://example.org/a"
NAMED = pytest.mark.parametrize("form", FORMS, ids=lambda form: form.name)


def _marker(form: CitationForm) -> str:
    """Return the example with the space before it that a writer puts there."""
    return form.example if form.name in ("superscript", "raised") else f" {form.example}"


@NAMED
def test_the_example_of_a_form_has_that_form_and_its_labels(form: CitationForm) -> None:
    (found,) = find_forms(f"It is raining{_marker(form)}.")
    assert (found.form, found.labels) == (form.name, form.labels)


def test_a_text_that_is_not_searched_has_no_markers(monkeypatch: pytest.MonkeyPatch) -> None:
    random = Random(3)
    pieces = [
        *"[](){}<>\\~^:,.-/ 1²\n\u2028",
        "\uff3b2\uff3d",
        "\u30143\u3015",
        "\u30104:0\u2020a\u3011",
        URL,
        "References:",
        "a.pdf",
    ]
    pieces += [
        *(form.example for form in FORMS),
        "It rains.",
        "It rains.\u00b9",
        "It rains.\u00b2",
        "It rains.\u2074",
        "x",
    ]
    texts = ["".join(random.choices(pieces, k=random.randrange(1, 5))) for _ in range(4000)]
    quick = [find_citations(text, (URL,), passages=4) for text in texts]
    assert {may_hold_forms(text) for text in texts} == {True, False}
    for module in (citation_forms, citations):
        monkeypatch.setattr(module, "may_hold_forms", lambda _: True)
    assert [find_citations(text, (URL,), passages=4) for text in texts] == quick


@NAMED
@pytest.mark.parametrize(
    ("before", "behind"),
    [
        ("It is raining", "."),
        ("It is raining.", ""),
        ("It is raining", ", and it snows."),
        ("It is raining", ".\nMore."),
    ],
)
def test_a_form_is_read_before_and_behind_the_full_stop(form: CitationForm, before: str, behind: str) -> None:
    text = f"{before}{_marker(form)}{behind}"
    (found,) = find_citations(text, (URL,), passages=3) if form.name != "parenthesis" else find_citations(text, ("2",))
    assert found.labels == form.labels
    assert text[found.start : found.end] == form.example
    if form.name not in ("link", "url") or before.endswith("."):
        assert strip_citations(text, (URL, "2") if form.name == "parenthesis" else (URL,)).text == f"{before}{behind}"


@NAMED
@pytest.mark.parametrize("between", ["", " ", ", ", " and ", "; "])
def test_two_markers_of_a_form_are_cut_with_what_joins_them(form: CitationForm, between: str) -> None:
    if (form.name == "superscript" and between in ("", " ", " and ")) or (form.name, between) == ("url", ""):
        return  # one number of two digits, no marker behind a space, one long URL
    behind = "\n" if form.name == "parenthesis" else " It snows."  # else it may be an enumeration
    text = f"It is raining.{_marker(form)}{between}{form.example}{behind}"
    stripped = strip_citations(text, (URL, "2"), passages=3)
    if form.name not in ("link", "url", "superscript"):
        assert stripped.text == f"It is raining.{behind}"
    assert {label for _, labels in stripped.citations for label in labels} == set(form.labels)


def test_lists_ranges_and_places_are_read() -> None:
    cases: list[tuple[str, tuple[str, ...]]] = [
        ("[1, p. 12]", ("1",)),
        ("[1, pp. 3-4; 2, S. 7 f.]", ("1", "2")),
        ("[2, \u00a7 4]", ("2",)),
        ("[1 and 2]", ("1", "2")),
        ("[1, 2 und 5]", ("1", "2", "5")),
        ("[1\u20133, and 5]", ("1", "2", "3", "5")),
        ("[^note]", ("note",)),
        ("[Docs 1, 2 and 4]", ("Docs 1", "2", "4")),
        ("[Sources 1-3]", ("1", "2", "3")),
        ("[\u0938\u094d\u0930\u094b\u0924 2]", ("\u0938\u094d\u0930\u094b\u0924 2",)),
        ("[S1, S4]", ("S1", "S4")),
        ("(Passage 1 and 2)", ("Passage 1", "2")),
        ("(Quellen 1, 3)", ("Quellen 1", "3")),
        ("[guide.pdf, p. 3]", ("guide.pdf#page=3",)),
        ("[a guide.pdf; it.md, section 2]", ("a guide.pdf", "it.md")),
        ("[guide.pdf](https://example.org/guide.pdf)", ("guide.pdf",)),
        ("[2](https://example.org)", ("2",)),
        ("[@lee2020, chap. 3; see also @kim]", ("lee2020", "kim")),
        ("\\citet*{a,b}", ("a", "b")),
        ("<cite>doc-3</cite>", ("doc-3",)),
        ("<sup>[1, 2]</sup>", ("1", "2")),
    ]
    for marker, labels in cases:
        text = f"It rains {marker}."
        assert [citation.labels for citation in find_citations(text)] == [labels], (marker, labels)
        assert strip_citations(text).text == "It rains.", (marker, labels)


def test_superscripts_are_lists_and_ranges() -> None:
    found = find_citations("It rains\u00b9,\u00b2. It snows\u00b9\u207b\u00b3. It pours.\u2074")
    assert [citation.labels for citation in found] == [("1", "2"), ("1", "2", "3"), ("4",)]


def test_the_forms_are_documented() -> None:
    rows = [f"| {form.name} | `{form.example}` | {form.names} |" for form in FORMS]
    assert [line for line in PAGE.read_text(encoding="utf-8").splitlines() if line.startswith("|")][2:] == rows
