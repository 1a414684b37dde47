"""Guides describe all builtin metrics, and their examples are right."""

import re
from dataclasses import fields

from metric_core.claims.citation_forms import FORMS
from metric_core.metrics.guides import read_guide
from metric_core.metrics.registry import METRICS
from tests.metric_core.guide_examples import read_example
from tests.structure.house import ROOT

SECTIONS = ["Formula", "Notes", "Example"]
DIFFERENCES = "Differences from Ragas and the documents"


def test_every_builtin_metric_has_a_guide_with_all_sections_and_no_guide_is_left_over() -> None:
    texts = {path.stem: path.read_text(encoding="utf-8") for path in ROOT.glob("metric_core/metrics/*.md")}
    assert texts.keys() == METRICS.keys()
    for name, text in texts.items():
        headings = re.findall(r"^#+ .*", text, re.MULTILINE)
        expected = [f"# {name}", *(f"## {title}" for title in (*SECTIONS, DIFFERENCES))]
        assert headings in (expected, expected[:-1])
        guide = read_guide(name)
        filled = {each.name for each in fields(guide) if getattr(guide, each.name)}
        assert filled == {"formula", "notes", "example"} | ({"differences"} if headings == expected else set())


def test_a_guide_is_read_whole() -> None:
    """Every word of a file is in a section, apart from headings and marks, and each row of a table on a line."""
    for name in METRICS:
        text = ROOT.joinpath(f"metric_core/metrics/{name}.md").read_text(encoding="utf-8")
        written = re.sub(r"^#+ .*|^- |^```\w*", "", text, flags=re.MULTILINE)
        guide = read_guide(name)
        parts = (guide.formula, *guide.notes, guide.example, *guide.differences)
        assert " ".join(parts).split() == written.split()
        assert set(re.findall(r"\|.*\|", text)) <= set("\n".join(guide.notes).splitlines()), name


def test_the_score_of_an_example_is_what_the_metric_computes_from_what_the_example_states() -> None:
    for name in METRICS:
        example = read_example(name)
        score = example.request.score(example.evidence)
        assert score.value is not None, score
        assert example.score == f"{score.value:.3f}".rstrip("0").rstrip("."), name
        readable = {*example.request.columns, *example.request.optional_columns}
        readable |= {"extras"} if example.request.own_columns else set()
        sample = example.evidence.sample
        assert {each.name for each in fields(sample) if getattr(sample, each.name)} <= {*readable, "row_id"}, name


def test_a_guide_names_only_parameters_that_the_metric_has() -> None:
    for name, metric in METRICS.items():
        guide = read_guide(name)
        written = re.findall(r"`(\w+)=", " ".join((guide.formula, *guide.notes, *guide.differences)))
        assert set(written) <= metric.parameters.keys()


def test_the_guides_name_every_form_of_a_citation_marker() -> None:
    for name in ("citation_precision", "dangling_citations"):
        forms = ", ".join(f"`{form.example}`" for form in FORMS)
        assert read_guide(name).notes[0 if name == "citation_precision" else 1].startswith(f"Markers are {forms}, ")
