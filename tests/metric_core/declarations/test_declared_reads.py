"""A metric reads and returns what it declares; anything else ends the run with its name."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import pytest

from metric_core import reasons
from metric_core.columns import ColumnType
from metric_core.declarations.metric import Metric, MetricRequest, Parameter, constant
from metric_core.errors import MetricError
from metric_core.evidence import ALL_CONTEXTS, BY_REFERENCE, Evidence, MissingProductError
from metric_core.metrics.registry import METRICS
from metric_core.prompts.judge_questions import texts_of
from metric_core.records import Question, Rating, Sample, Score, Side, Status, VerdictKind
from metric_core.stages import Product

SUPPORT = VerdictKind.SUPPORT
WHOLE = Evidence(
    Sample(
        row_id="r1",
        user_input="Why?",
        response="It rains.",
        retrieved_contexts=("Rain.",),
        reference="Rain.",
        reference_contexts=("Rain.",),
        retrieved_context_ids=("1",),
        reference_context_ids=("1",),
        rubrics={},
        extras={"priority": 1},
        retrieved_context_scores=(0.5,),
        session_id="s1",
        conversation="User: Why?",
        earlier_turns="User: Hi!",
        earlier_contexts=(),
        tool_results=(),
        earlier_answers=("Hello!",),
        relevance_judgments={"a": 1.0},
    ),
    claims={Side.RESPONSE: {"response:0": "It rains."}, Side.REFERENCE: {"reference:0": "Rain."}},
    verdicts={
        (SUPPORT, "response:0", ALL_CONTEXTS): 1.0,
        (SUPPORT, "response:0", BY_REFERENCE): 0.0,
        (SUPPORT, "response:0", "context:0"): 1.0,
        (VerdictKind.USEFULNESS_FOR_RESPONSE, "", "context:0"): 1.0,
    },
    entities={Side.REFERENCE: ("Rain",)},
    questions=[Question("Does it rain?")],
    question_similarities=[0.5],
    answer_similarities={Product.ANSWER_SIMILARITY: 0.5},
    ratings={"toy": [Rating("only", "1")], "other": [Rating("only", "0")]},
)
TOY = Metric(
    name="toy",
    summary="Reads.",
    source="tests",
    family="toy",
    columns=constant("response"),
    products=constant(Product.RESPONSE_CLAIMS_BY_CONTEXTS),
    compute=lambda _request, _evidence: Score.scored(1.0),
    undefined={reasons.NO_RESPONSE_CLAIMS: "no claims"},
    parameters={"most": Parameter(summary="maximum", default=1)},
)


def score(read: Callable[[MetricRequest, Evidence], Any], **changes: Any) -> Score:
    """Return the score of a metric that reads and returns this."""
    return replace(TOY, compute=read, **changes).request().score(WHOLE)


def reading_with(read: Callable[[Evidence], object]) -> Callable[[MetricRequest, Evidence], Any]:
    return lambda _request, evidence: read(evidence)


def returning(value: Any) -> Callable[[MetricRequest, Evidence], Any]:
    return lambda _request, _evidence: value


UNDECLARED: Mapping[str, tuple[Callable[[Evidence], Any], str]] = {
    "claims": (lambda e: e.claim_ids(Side.REFERENCE, Product.REFERENCE_CLAIMS), "product 'reference claims'"),
    "verdicts": (
        lambda e: e.supports(Side.RESPONSE, BY_REFERENCE, Product.RESPONSE_CLAIMS_BY_REFERENCE),
        "product 'response claims by reference'",
    ),
    "each context": (
        lambda e: e.context_supports(Side.RESPONSE, Product.CLAIMS_BY_EACH_CONTEXT),
        "product 'claims by each context'",
    ),
    "usefulness": (
        lambda e: e.usefulness(VerdictKind.USEFULNESS_FOR_RESPONSE),
        "product 'usefulness of contexts for the response'",
    ),
    "relevance": (lambda e: e.relevance(), "product 'relevance of context sentences'"),
    "entities": (lambda e: e.entity_set(Side.REFERENCE, Product.REFERENCE_ENTITIES), "product 'reference entities'"),
    "questions": (lambda e: e.regenerated_questions(), "product 'regenerated questions'"),
    "cosines": (lambda e: e.cosines(), "product 'similarity of regenerated questions'"),
    "similarity": (lambda e: e.answer_similarity(), "product 'similarity of response and reference'"),
    "ratings": (lambda e: e.ratings_of("toy"), "product 'ratings'"),
    "field claims": (lambda e: e.claims.get(Side.REFERENCE), "'reference claims'"),
    "field verdicts": (lambda e: e.verdicts[SUPPORT, "response:0", BY_REFERENCE], "'response claims by reference'"),
    "field entities": (lambda e: e.entities[Side.REFERENCE], "'reference entities'"),
    "field questions": (lambda e: e.questions, "'regenerated questions'"),
    "field cosines": (lambda e: e.question_similarities, "'similarity of regenerated questions'"),
    "field similarities": (
        lambda e: e.answer_similarities.get(Product.ANSWER_SIMILARITY),
        "'similarity of response and reference'",
    ),
    "field ratings": (lambda e: e.ratings["toy"], "'ratings'"),
    "column": (lambda e: e.column("reference"), "column 'reference'"),
    "sample": (lambda e: e.sample.user_input, "column 'user_input'"),
    "joined contexts": (lambda e: e.sample.joined_contexts, "column 'retrieved_contexts'"),
    "own column": (lambda e: e.column("priority"), "column 'priority'"),
    "extras": (lambda e: (e.sample.extras or {}).get("priority"), "column 'priority'"),
    "texts": (lambda e: texts_of(e.sample), "column 'retrieved_contexts'"),
}


def test_an_undeclared_read_ends_the_run_with_the_name_of_the_metric() -> None:
    for read, (reading, names) in UNDECLARED.items():
        with pytest.raises(
            MetricError, match=r"^the metric toy reads .* which it does not declare; add it to its"
        ) as error:
            score(reading_with(reading))
        assert names in str(error.value), read


def test_every_field_of_the_evidence_is_guarded() -> None:
    silent = []
    request = replace(TOY, columns=constant(), products=constant(), compute=returning(None)).request()
    evidence = _evidence_of(request)
    for name in ("claims", "verdicts", "entities", "answer_similarities", "ratings"):
        assert list(getattr(evidence, name)) == []
    for name in ("questions", "question_similarities"):
        try:
            getattr(evidence, name)
        except MetricError:
            continue
        silent.append(name)
    assert silent == []


def _evidence_of(request: MetricRequest) -> Evidence:
    found: list[Evidence] = []

    def keep(_request: MetricRequest, evidence: Evidence) -> Score:
        found.append(evidence)
        return Score.scored(0.0)

    replace(request.metric, compute=keep).request().score(WHOLE)
    return found[0]


def test_a_metric_reads_what_it_declares_and_what_that_is_computed_from() -> None:
    def read(request: MetricRequest, evidence: Evidence) -> Score:
        assert evidence.claim_ids(Side.RESPONSE, Product.RESPONSE_CLAIMS) == ("response:0",)
        assert evidence.claims[Side.RESPONSE] == {"response:0": "It rains."}
        assert list(evidence.verdicts) == [(SUPPORT, "response:0", ALL_CONTEXTS)]
        assert (evidence.sample.row_id, evidence.sample.response) == ("r1", "It rains.")
        assert request.parameters["most"] == request.parameters.get("most") == 1
        return Score.scored(sum(evidence.supports(Side.RESPONSE, ALL_CONTEXTS, request.products[0])))  # type: ignore[arg-type]

    assert score(read).value == 1.0


def test_an_optional_column_may_be_read_and_may_be_missing() -> None:
    metric = replace(
        TOY,
        optional_columns=constant("reference"),
        compute=lambda _request, evidence: Score.scored(evidence.sample.reference is None),
    )
    assert metric.request().score(WHOLE).value == 0.0
    assert metric.request().score(Evidence(Sample(response="x"))).value == 1.0


def test_ratings_of_another_metric_and_undeclared_parameters_are_errors() -> None:
    ratings = {"products": constant(Product.RATINGS), "ratings": lambda _sample, _parameters: []}
    with pytest.raises(MetricError, match="the metric toy reads the ratings of 'other'; it can read only its own"):
        score(lambda _request, evidence: evidence.ratings_of("other"), **ratings)
    with pytest.raises(MetricError, match=r"the metric toy raised KeyError: .*no parameter 'least'; it has: most"):
        score(lambda request, _evidence: request.parameters.get("least", 5))


def test_rating_questions_may_show_declared_columns_only() -> None:
    metric = replace(TOY, products=constant(Product.RATINGS), ratings=lambda sample, _parameters: texts_of(sample))  # type: ignore[arg-type,return-value]
    with pytest.raises(MetricError, match="the metric toy reads the column 'retrieved_contexts'"):
        metric.request().rating_requests(WHOLE.sample)


def test_a_result_that_is_not_declared_ends_the_run() -> None:
    cases: list[tuple[Any, str]] = [
        (0.5, "returned 0.5, wanted a Score"),
        (None, "returned None, wanted a Score"),
        (Score.scored(1.5), "returned 1.5, but declares 0 to 1"),
        (Score(Status.SCORED, value=float("nan")), "returned the value nan, wanted a finite number"),
        (Score(Status.SCORED, value="1"), "returned the value '1', wanted a finite number"),  # type: ignore[arg-type]
        (Score(Status.SCORED, value=True), "returned the value True, wanted a finite number"),
        (Score(Status.SCORED), "wanted a number, or a label as a text"),
        (Score(Status.SCORED, value=1.0, reason="why"), "wanted no reason in a scored cell"),
        (Score(Status.SCORED, label=5), "wanted a number, or a label as a text"),  # type: ignore[arg-type]
        (Score(Status.UNDEFINED, value=0.0, reason="x"), "wanted no value in an undefined or failed cell"),
        (Score("done", value=0.0), "returned the status 'done'"),  # type: ignore[arg-type]
        (Score.undefined("bad mood"), "returned the reason 'bad mood' of an undefined cell, which it does not declare"),
        (Score(Status.UNDEFINED), "returned the reason None of an undefined cell"),
        (Score.failed("bad mood"), "returned the reason 'bad mood' of a failed cell, which it does not declare"),
    ]
    for returned, message in cases:
        with pytest.raises(MetricError) as error:
            score(returning(returned))
        assert str(error.value).startswith("the metric toy returned "), (returned, message)
        assert message in str(error.value), (returned, message)
        assert str(error.value).endswith("(row 'r1')"), (returned, message)


@pytest.mark.parametrize(
    "allowed",
    [
        Score.undefined(reasons.NO_RESPONSE_CLAIMS),
        Score.undefined("no response"),
        Score.failed(reasons.NO_USABLE_VERDICT),
        Score.failed("out of paper"),
        Score.scored(1.0 + 1e-15),
        Score.labelled("good"),
    ],
)
def test_declared_results_are_scores(allowed: Score) -> None:
    assert score(returning(allowed), failed={"out of paper": "the printer is empty"}) == allowed


def test_a_metric_cannot_invent_a_gap() -> None:
    def invent(_request: MetricRequest, _evidence: Evidence) -> Score:
        raise MissingProductError(Score.undefined("bad mood"))

    with pytest.raises(MetricError, match="raised MissingProductError for 'bad mood', which is not a recorded gap"):
        score(invent)


def test_an_error_in_a_builtin_formula_names_the_metric_and_the_row() -> None:
    def divide(_request: MetricRequest, _evidence: Evidence) -> Score:
        raise ZeroDivisionError("no words")

    with pytest.raises(MetricError, match=r"^the metric faithfulness raised ZeroDivisionError: no words \(row 'r1'\)$"):
        replace(METRICS["faithfulness"], compute=divide).request().score(WHOLE)


def test_an_own_column_has_the_declared_type_or_the_cell_is_undefined() -> None:
    cases: list[tuple[ColumnType, Any, Score]] = [
        (ColumnType.NUMBER, 3, Score.scored(3)),
        (ColumnType.NUMBER, "2.5", Score.scored(2.5)),
        (ColumnType.NUMBER, "high", Score.undefined("priority is not a number")),
        (ColumnType.NUMBER, True, Score.undefined("priority is not a number")),
        (ColumnType.NUMBER, None, Score.undefined("no priority")),
        (ColumnType.FLAG, True, Score.scored(1)),
        (ColumnType.FLAG, 1, Score.undefined("priority is not a true or false")),
        (ColumnType.TEXT, 5, Score.undefined("priority is not a text")),
        (ColumnType.TEXTS, [5], Score.undefined("priority is not a list of texts")),
    ]
    for kind, value, wanted in cases:
        metric = replace(
            TOY,
            own_columns={"priority": kind},
            bounds=constant_none,
            compute=lambda _request, evidence: Score.scored(evidence.column("priority")),
        )
        sample = Sample(response="x", extras={} if value is None else {"priority": value})
        assert metric.request().score(Evidence(sample)) == wanted, (kind, value, wanted)
        assert metric.request().score(Evidence(Sample(response="x"))) == Score.undefined("no priority"), (
            kind,
            value,
            wanted,
        )


def constant_none(_parameters: Any) -> None:
    return None
