"""A product of a plugin is computed once per row, from what it declares, and says why it has no value."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from metric_core import reasons
from metric_core.columns import ColumnType
from metric_core.declarations.metric import Metric, constant
from metric_core.declarations.own_products import OwnProduct, check_shared_products
from metric_core.errors import MetricError, PluginError
from metric_core.evidence import ALL_CONTEXTS, Evidence, MissingProductError
from metric_core.records import Sample, Score, Side, VerdictKind
from metric_core.stages import Product

SUPPORT = VerdictKind.SUPPORT
SHY = "nothing to say"


def row(**changes: Any) -> Evidence:
    sample = Sample(row_id="r1", response="It rains.", retrieved_contexts=("Rain.",), extras={"priority": "2"})
    return Evidence(
        replace(sample, **changes),
        claims={Side.RESPONSE: {"response:0": "It rains."}},
        verdicts={(SUPPORT, "response:0", ALL_CONTEXTS): 0.25},
    )


def _support(evidence: Evidence) -> Any:
    return evidence.supports(Side.RESPONSE, ALL_CONTEXTS, Product.RESPONSE_CLAIMS_BY_CONTEXTS)[0]


WORDS = OwnProduct("words", lambda evidence: evidence.column("response").split(), reads=("response",))
FIRST = OwnProduct("first support", _support, reads=(Product.RESPONSE_CLAIMS_BY_CONTEXTS,))


def metric(*products: OwnProduct, read: str = "", **changes: Any) -> Metric:
    """Return a metric that scores 1 if it can read a product."""
    read = read or products[0].name

    def compute(_request: object, evidence: Evidence) -> Score:
        evidence.product(read)
        return Score.scored(1.0)

    toy = Metric(
        name="toy",
        summary="Reads.",
        source="tests",
        family="toy",
        columns=constant(),
        products=constant(),
        own_products=products,
        compute=compute,
        undefined={},
    )
    return replace(toy, **changes)


def score_of(compute: Callable[[Evidence], Any], evidence: Evidence | None = None, **declared: Any) -> Score:
    return metric(OwnProduct("thing", compute, **declared)).request().score(evidence or row())


def test_metrics_share_one_computation_per_row() -> None:
    rows_seen = []

    def count(evidence: Evidence) -> int:
        rows_seen.append(evidence.sample.row_id)
        return len(evidence.column("response"))

    counted = OwnProduct("letters", count, reads=("response",))
    requests = [replace(metric(counted), name=name).request() for name in ("one", "two", "three")]
    evidence = [row(row_id="a"), row(row_id="b")]
    assert [request.score(each).value for each in evidence for request in requests] == [1.0] * 6
    assert rows_seen == ["a", "b"]


def test_what_a_product_reads_is_needed_by_its_metrics() -> None:
    request = metric(FIRST, replace(WORDS, optional_columns=("user_input",)), columns=constant("reference")).request()
    assert request.columns == ("reference", "response", "retrieved_contexts")
    assert request.products == (Product.RESPONSE_CLAIMS_BY_CONTEXTS,)
    assert request.optional_columns == ("user_input",)
    assert metric(WORDS).request().score(row(response=None)) == Score.undefined(reasons.missing_column("response"))


@pytest.mark.parametrize(
    ("read", "message"),
    [
        (
            lambda e: e.column("response"),
            r"reads the column 'response', which it does not declare; add it to its reads",
        ),
        (_support, r"reads the product 'response claims by all contexts', .* add it to its reads"),
        (lambda e: e.column("priority"), r"reads the column 'priority', which it does not declare"),
        (lambda e: e.product("words"), r"reads the product 'words'; a product of a plugin cannot read another one"),
        (lambda e: e.computed, r"reads evidence.computed; read a product by evidence.product\(name\)"),
    ],
)
def test_an_undeclared_read_ends_the_run(read: Callable[[Evidence], Any], message: str) -> None:
    with pytest.raises(MetricError, match=f"^the product 'thing' of the metric toy {message}"):
        # The metric may read the column: what counts is what the product declares.
        metric(OwnProduct("thing", read), columns=constant("response")).request().score(row())


def test_a_metric_reads_the_products_that_it_declares() -> None:
    with pytest.raises(
        MetricError,
        match=r"^the metric toy reads the product 'first support', which it does not declare; "
        "add it to its own_products",
    ):
        metric(WORDS, read="first support").request().score(row())
    asking = metric(
        WORDS,
        products=constant(Product.REQUESTED_VERDICTS),
        verdicts=lambda evidence, _parameters: evidence.product("words"),
    )
    with pytest.raises(
        MetricError, match="reads the product 'words' in its function verdicts, which can read declared"
    ):
        asking.request().score(row())
    with pytest.raises(LookupError, match="the product 'words' is computed when a metric reads it"):
        row().product("words")


def test_the_reason_of_a_product_is_the_score_of_its_metrics() -> None:
    assert score_of(lambda _: Score.undefined(SHY), undefined={SHY: "always"}) == Score.undefined(SHY)
    failed = Score.failed(reasons.NO_USABLE_VERDICT)
    assert score_of(lambda _: failed) == failed
    cell = score_of(lambda evidence: evidence.column("priority"), own_columns={"priority": ColumnType.FLAG})
    assert (cell.status, cell.reason) == ("undefined", reasons.wrong_type("priority", ColumnType.FLAG))
    gap = Score.failed("the reply was cut off")
    evidence = replace(row(), gaps={Product.RESPONSE_CLAIMS: gap})
    assert metric(FIRST).request().score(evidence) == gap


@pytest.mark.parametrize(
    ("compute", "message"),
    [
        (lambda e: e.sample.row_id[9], r"raised IndexError: string index out of range \(row 'r1'\)"),
        (lambda _: None, r"returned None; wanted a value, or Score.undefined\(reason\) \(row 'r1'\)"),
        (lambda _: Score.scored(1.0), r"returned Score\(.*; wanted the value itself, without a Score \(row 'r1'\)"),
        (lambda _: Score.undefined(SHY), r"returned the reason 'nothing to say' of an undefined cell, .* \(row 'r1'\)"),
    ],
)
def test_an_error_names_the_product_the_metric_and_the_row(compute: Callable[[Evidence], Any], message: str) -> None:
    with pytest.raises(MetricError, match=f"^the product 'thing' of the metric toy {message}"):
        score_of(compute)


def test_a_product_cannot_invent_a_gap() -> None:
    def invent(_evidence: Evidence) -> Any:
        raise MissingProductError(Score.undefined("no mood"))

    with pytest.raises(MetricError, match="raised MissingProductError for 'no mood', which is not a recorded gap"):
        score_of(invent)


def test_different_products_of_one_name_are_refused_with_both_origins() -> None:
    other = replace(WORDS, compute=_support)
    check_shared_products([("a:ONE", WORDS), ("a:TWO", replace(WORDS)), ("b:THREE", FIRST)])
    with pytest.raises(PluginError) as caught:
        check_shared_products([("a:ONE", WORDS), ("b:TWO", other)])
    here = _support.__module__
    message = f"the metrics a:ONE and b:TWO declare different products 'words' ({here}.<lambda> and {here}._support)"
    assert message in str(caught.value)
    evidence = row()
    metric(WORDS).request().score(evidence)
    with pytest.raises(PluginError, match="declare different products 'words'"):
        metric(other).request().score(evidence)
