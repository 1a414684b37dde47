"""Products of plugins: checked when a metric is loaded, part of its code, computed once per row of a run."""

import importlib
import os
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from flows.config.run_config import RunConfig
from flows.planning.metric_plan import make_plan
from metric_core.calibration.platt import ProbabilityMap
from metric_core.errors import PluginError
from metric_core.stages import Product, Stage
from tasks.options.metric_settings import MetricSettings
from tasks.plugins.load_object import load_object
from tasks.plugins.metric_lookup import _find_custom, find_metric, parse_metric
from tasks.rows.records import build_table
from tasks.stages.aggregation import AggregationSettings, aggregation
from tests.tasks.builders import run_stage, samples_table

SHARED = """
from rag_assay.plugins import ALL_CONTEXTS, OwnProduct, Product, Side

CALLS = []


def supports(evidence):
    CALLS.append(evidence.sample.row_id)
    return evidence.supports(Side.RESPONSE, ALL_CONTEXTS, Product.RESPONSE_CLAIMS_BY_CONTEXTS)


SUPPORTS = OwnProduct("supports", supports, reads=("response claims by all contexts",), undefined={"shy": "never"})
"""
METRICS = """
from dataclasses import replace

from rag_assay.plugins import Metric, OwnProduct, Score, constant
from shared_supports import SUPPORTS


def score(request, evidence):
    return Score.scored(sum(evidence.product("supports")))


LEAST = Metric(
    name="least", summary="s", source="s", family="f", columns=constant(), products=constant(),
    own_products=(SUPPORTS,), compute=score, undefined={},
)
MOST = replace(LEAST, name="most")
OTHER = replace(LEAST, name="other", own_products=(replace(SUPPORTS, compute=len),))
ALONE = replace(LEAST, name="alone", own_products=())
"""


@pytest.fixture
def load(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., None]]:
    """Return a function that writes the two modules and forgets what was loaded of them."""
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setattr(sys, "dont_write_bytecode", True)

    def forget() -> None:
        for module in ("shared_supports", "supports_metrics"):
            sys.modules.pop(module, None)
        for cached in (load_object, _find_custom):
            cached.cache_clear()

    def write(shared: str = SHARED, metrics: str = METRICS) -> None:
        (tmp_path / "shared_supports.py").write_text(shared, encoding="utf-8")
        (tmp_path / "supports_metrics.py").write_text(metrics, encoding="utf-8")
        forget()

    yield write
    forget()


def test_the_code_of_a_metric_contains_that_of_its_products(load: Callable[..., None]) -> None:
    load()
    before = {name: find_metric(f"supports_metrics:{name}").code for name in ("LEAST", "ALONE")}
    load(shared=SHARED + "\n# changed\n")
    after = {name: find_metric(f"supports_metrics:{name}").code for name in ("LEAST", "ALONE")}
    assert [name for name in before if before[name] != after[name]] == ["LEAST"]


def test_code_that_changed_after_it_was_loaded_has_a_digest_of_its_own(
    load: Callable[..., None], tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    load()
    importlib.import_module("supports_metrics")  # as a user does before the object is asked for
    load_object.cache_clear()
    first = find_metric("supports_metrics:LEAST").code
    load()
    clean = find_metric("supports_metrics:LEAST").code
    later = time.time() + 60
    os.utime(tmp_path / "shared_supports.py", (later, later))
    load_object.cache_clear()
    _find_custom.cache_clear()
    changed = find_metric("supports_metrics:LEAST").code
    assert len({first, clean, changed}) == 3
    assert "shared_supports.py has changed since this process loaded it" in caplog.text


def test_a_run_plans_what_products_read_and_refuses_two_of_one_name(load: Callable[..., None]) -> None:
    load()
    columns = ("response", "retrieved_contexts")
    plan = make_plan(RunConfig(metrics=("supports_metrics:LEAST", "supports_metrics:MOST")), columns)
    assert plan.products == {Product.RESPONSE_CLAIMS, Product.RESPONSE_CLAIMS_BY_CONTEXTS}
    assert set(plan.required["least"]) == {"response", "retrieved_contexts"}
    with pytest.raises(PluginError, match=r"supports_metrics:LEAST and supports_metrics:OTHER declare .*'supports'"):
        make_plan(RunConfig(metrics=("supports_metrics:LEAST", "supports_metrics:OTHER")), columns)
    assert find_metric("supports_metrics:LEAST").undefined == {"shy": "never"}


def _rows() -> list[dict[str, Any]]:
    return [{"row_id": row, "response": "It rains.", "retrieved_contexts": ["Rain."]} for row in ("a", "b")]


def test_a_run_computes_a_product_once_per_row_and_again_for_mapped_probabilities(load: Callable[..., None]) -> None:
    load()
    claim = {"side": "response", "claim_id": "response:0", "text": "It rains.", "status": "answered"}
    verdict = {"kind": "support", "claim_id": "response:0", "premise": "contexts", "status": "answered", "verdict": 1}
    samples = samples_table(*_rows())
    ids = samples.column("row_id").to_pylist()
    tables = {
        Stage.SAMPLES: samples,
        Stage.CLAIMS: build_table(Stage.CLAIMS, [{"row_id": row, **claim} for row in ids]),
        Stage.VERDICTS: build_table(Stage.VERDICTS, [{"row_id": row, **verdict, "probability": 0.75} for row in ids]),
    }
    metrics = [parse_metric(f"supports_metrics:{name}") for name in ("LEAST", "MOST")]
    settings = AggregationSettings.model_validate(
        {"metrics": tuple(map(MetricSettings.from_request, metrics)), "verdict": "probability"}
    )
    found = run_stage(aggregation, tables, settings).table.to_pylist()
    assert [row["value"] for row in found] == [0.75] * 4
    calls = sys.modules["shared_supports"].CALLS
    assert calls == ids
    calls.clear()
    mapped = settings.model_copy(update={"maps": {"most": ProbabilityMap(0.0, 0.0)}})
    found = run_stage(aggregation, tables, mapped).table.to_pylist()
    assert [(row["metric"], row["value"]) for row in found] == [("least", 0.75), ("most", 0.5)] * 2
    assert calls == [ids[0], ids[0], ids[1], ids[1]]


@pytest.mark.parametrize(
    ("products", "message"),
    [
        ("[SUPPORTS]", "own_products is [OwnProduct("),
        ("(SUPPORTS.compute,)", "wanted an OwnProduct"),
        ("(SUPPORTS, SUPPORTS)", "the product 'supports': the name is empty or used by another product"),
        ("(replace(SUPPORTS, name='ratings'),)", "the name is empty or used by another product"),
        ("(replace(SUPPORTS, compute=1),)", "compute is 1, wanted a function of the evidence of a row"),
        ("(replace(SUPPORTS, reads='response'),)", "reads is 'response', wanted a tuple of products and columns"),
        ("(replace(SUPPORTS, reads=('ratings',)),)", "reads the product 'ratings', which is different for each metric"),
        ("(replace(SUPPORTS, reads=('respons',)),)", "reads 'respons', wanted products or columns: response"),
        ("(replace(SUPPORTS, optional_columns=('answer',)),)", "reads the column 'answer', wanted some of"),
        ("(replace(SUPPORTS, own_columns={'answer': 1}),)", "add it to reads, not to own_columns"),
    ],
)
def test_invalid_declarations_are_refused(load: Callable[..., None], products: str, message: str) -> None:
    load(metrics=f"{METRICS}\nWRONG = replace(LEAST, own_products={products})\n")
    with pytest.raises(PluginError) as caught:
        find_metric("supports_metrics:WRONG")
    assert message in str(caught.value)
