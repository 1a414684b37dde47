"""The metrics of citations find what was planted in the cited answers of the handbook."""

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from metric_core.metrics.registry import parse_request
from metric_core.records import Status
from metric_core.stages import Product, Stage
from tasks.options.metric_settings import MetricSettings
from tasks.rows.records import read_samples_table
from tasks.rows.sample_evidence import read_evidence
from tasks.stages.claims import ClaimsSettings, claims
from tasks.stages.verdicts import VerdictsSettings, verdicts
from tests.tasks.builders import run_stage, samples_table

EXAMPLES = Path(__file__).parents[2] / "examples"
NAMES = ("citation_precision", "citation_recall", "misattributed_claims", "uncited_claims", "dangling_citations")
ROWS = [json.loads(line) for line in (EXAMPLES / "handbook_cited.jsonl").read_text(encoding="utf-8").splitlines()]


def test_rows_are_consistent() -> None:
    texts = "\n".join(path.read_text(encoding="utf-8") for path in (EXAMPLES / "handbook").glob("*.md"))
    counts = Counter(row["planted"] for row in ROWS)
    assert counts == {"good": 6, "swapped": 4, "dropped": 4, "dangling": 1, "superfluous": 1}
    for row in ROWS:
        assert len(row["retrieved_contexts"]) == len(row["retrieved_context_ids"])
        assert all(passage in texts for passage in row["retrieved_contexts"])
        assert bool(row["planted_marker"]) == (row["planted"] != "good")


@pytest.fixture(scope="module")
def scores() -> dict[str, dict[str, float]]:
    """Return the scores of each row by the built-in judge, with verdicts of 0 and 1."""
    columns = ("user_input", "response", "retrieved_contexts", "retrieved_context_ids")
    samples = samples_table(*[{name: row[name] for name in columns} for row in ROWS])
    requests = [parse_request(name) for name in NAMES]
    judged: dict[str, Any] = {"metrics": tuple(map(MetricSettings.from_request, requests))}
    products = (Product.RESPONSE_CLAIMS, Product.RESPONSE_SENTENCES)
    tables = {Stage.SAMPLES: samples}
    tables[Stage.CLAIMS] = run_stage(claims, tables, ClaimsSettings(products=products)).table
    settings = VerdictsSettings(products=(Product.REQUESTED_VERDICTS,), **judged)
    tables[Stage.VERDICTS] = run_stage(verdicts, tables, settings).table
    found = {}
    for row, evidence in zip(ROWS, read_evidence(read_samples_table(samples), tables, "binary"), strict=True):
        cells = {request.key: request.score(evidence) for request in requests}
        assert all(cell.status is Status.SCORED for cell in cells.values())
        found[row["id"]] = {name: cell.value or 0.0 for name, cell in cells.items()}
    return found


def _differences(scores: dict[str, dict[str, float]], planted: str) -> list[dict[str, float]]:
    """Return how each row differs from the good row of its pair."""
    good = {row["pair"]: scores[row["id"]] for row in ROWS if row["planted"] == "good"}
    rows = [row for row in ROWS if row["planted"] == planted]
    return [{name: scores[row["id"]][name] - good[row["pair"]][name] for name in NAMES} for row in rows]


@pytest.mark.models
def test_good_rows_cite_what_they_need(scores: dict[str, dict[str, float]]) -> None:
    for row in ROWS:
        if row["planted"] == "good":
            assert tuple(scores[row["id"]].values()) == (1, 1, 0, 0, 0)


@pytest.mark.models
def test_planted_changes_are_found(scores: dict[str, dict[str, float]]) -> None:
    for found in _differences(scores, "swapped"):
        assert found["citation_recall"] < 0
        assert found["citation_precision"] < 0
        assert found["misattributed_claims"] == pytest.approx(-found["citation_recall"])
        assert found["uncited_claims"] == 0
    for found in _differences(scores, "dropped"):
        assert found["uncited_claims"] == pytest.approx(-found["citation_recall"])
        assert found["citation_recall"] < 0
        assert (found["citation_precision"], found["misattributed_claims"]) == (0, 0)
    (dangling,) = _differences(scores, "dangling")
    assert tuple(dangling.values()) == (-0.5, -0.5, 0.5, 0, 0.5)
    (superfluous,) = _differences(scores, "superfluous")
    assert tuple(superfluous.values()) == (-0.5, 0, 0, 0, 0)
