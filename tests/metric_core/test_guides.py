"""Guides describe all builtin metrics, and their examples are right."""

import re

import pytest

from metric_core.guides.all_guides import GUIDES
from metric_core.guides.guide import describe_evidence
from metric_core.registry import METRICS


def test_every_builtin_metric_has_a_guide() -> None:
    assert GUIDES.keys() == METRICS.keys()


@pytest.mark.parametrize("name", GUIDES)
def test_the_score_of_an_example_is_what_the_metric_computes(name: str) -> None:
    example = GUIDES[name].example
    request = METRICS[name].request(example.parameters, next(iter(example.evidence.ratings), None))
    score = request.score(example.evidence)
    assert (score.label if score.value is None else score.value) == pytest.approx(example.value), score
    assert example.comment.endswith(".")


@pytest.mark.parametrize("name", GUIDES)
def test_an_example_shows_everything_that_its_score_depends_on(name: str) -> None:
    evidence = GUIDES[name].example.evidence
    lines = describe_evidence(evidence)
    assert len(lines) == len(set(lines))
    stated = sum(line.count(": yes") + line.count(": no") for line in lines)
    assert stated >= len(evidence.verdicts)
    assert len(lines) > (0 if evidence.verdicts or evidence.ratings or evidence.entities else 1)


@pytest.mark.parametrize("name", GUIDES)
def test_a_guide_names_only_parameters_that_the_metric_has(name: str) -> None:

    guide = GUIDES[name]
    written = re.findall(r"`(\w+)=", " ".join((guide.formula, *guide.notes, *guide.differences)))
    assert set(written) <= METRICS[name].parameters.keys()
