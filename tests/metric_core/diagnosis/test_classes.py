"""The diagnosis of rows: every class, subsets of verdicts, failed verdicts."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from metric_core import reasons
from metric_core.declarations.diagnosis_class import ScoreClass, SystemPart
from metric_core.declarations.metric import Metric, MetricRequest, constant
from metric_core.diagnosis.classes import CLASSES, PASSAGE_MISSING, classes_of, diagnose
from metric_core.diagnosis.lost_points import find_lost_points
from metric_core.errors import PluginError
from metric_core.evidence import ALL_CONTEXTS, BY_REFERENCE, BY_RESPONSE, Evidence, context_premise
from metric_core.metrics.context_sufficiency import OF_CONTEXTS
from metric_core.metrics.refusals import REFERENCE_ANSWERS, RESPONSE_ANSWERS
from metric_core.records import Importance, KeyPoint, Question, Rating, Sample, Score, Side, Support, VerdictKind
from metric_core.refusals.refusal_kinds import RefusalKind
from metric_core.stages import Product, closure

FIRST, SECOND = context_premise(0), context_premise(1)
EVERYTHING = closure(
    [
        *(Product.RESPONSE_CLAIMS_BY_CONTEXTS, Product.RESPONSE_CLAIMS_BY_REFERENCE),
        *(Product.REFERENCE_CLAIMS_BY_CONTEXTS, Product.REFERENCE_CLAIMS_BY_RESPONSE),
        *(Product.CLAIMS_BY_EACH_CONTEXT, Product.USEFULNESS_FOR_REFERENCE),
    ]
)
Supports = dict[str, Support]
ROW = Sample(
    user_input="When does the shop open?",
    response="The shop opens at nine.",
    retrieved_contexts=("The shop in Delft opens at nine.", "The shop in Breda opens at eleven."),
    reference="The shop opens at nine.",
)
RIGHT: Supports = {ALL_CONTEXTS: 1.0, BY_REFERENCE: 1.0}
STATED: Supports = {ALL_CONTEXTS: 1.0, BY_RESPONSE: 1.0}


def judge(
    sample: Sample,
    claims: Mapping[Side, Mapping[str, Mapping[str, Support]]],
    kind: VerdictKind = VerdictKind.SUPPORT,
    **more: Any,
) -> Evidence:
    """The evidence of a row whose claims have these verdicts, by text and premise."""
    ids = {side: {f"{side}:{number}": text for number, text in enumerate(texts)} for side, texts in claims.items()}
    verdicts = {
        (kind, claim, premise): support
        for side, texts in ids.items()
        for claim, text in texts.items()
        for premise, support in claims[side][text].items()
    }
    return Evidence(sample, claims=ids, verdicts=verdicts, **more)


def evidence_of(
    sample: Sample = ROW,
    response: dict[str, Supports] | None = None,
    reference: dict[str, Supports] | None = None,
    useful: tuple[Support, ...] = (1.0, 0.0),
    **more: Any,
) -> Evidence:
    """The evidence of a row that is answered well, except for what is given."""
    claims = {
        Side.RESPONSE: {"The shop opens at nine.": RIGHT} if response is None else response,
        Side.REFERENCE: {"The shop opens at nine.": STATED} if reference is None else reference,
    }
    found = judge(sample, claims, **more)
    ranks = {
        (VerdictKind.USEFULNESS_FOR_REFERENCE, "", context_premise(i)): value
        for i, value in enumerate(useful[: len(sample.retrieved_contexts or ())])
    }
    return replace(found, verdicts={**found.verdicts, **ranks})


def declining(reference: str = ROW.reference or "", text: str = "I could not find that.") -> Sample:
    return replace(ROW, response=text, reference=reference)


def rating_of(sufficient: str | None, *, unable: bool = False) -> dict[str, list[Rating]]:
    return {"context_sufficiency": [Rating(OF_CONTEXTS, sufficient, unable=unable)]}


AT_ELEVEN = "The shop opens at eleven."
LOST: Supports = {ALL_CONTEXTS: 1.0, BY_RESPONSE: 0.0}
NOT_THERE: Supports = {ALL_CONTEXTS: 0.0, BY_RESPONSE: 0.0}
NOWHERE: Supports = {ALL_CONTEXTS: 0.0, BY_REFERENCE: 0.0}
IN_SECOND: Supports = {ALL_CONTEXTS: 1.0, BY_REFERENCE: 0.0, FIRST: 0.0, SECOND: 1.0}
ASIDE: Supports = {ALL_CONTEXTS: 1.0, BY_REFERENCE: 0.0}
POINT = "The shop opens at nine."

EXAMPLES: dict[str, Evidence] = {
    "answered": evidence_of(),
    "badly ranked": evidence_of(useful=(0.0, 1.0)),
    "rightly refused": evidence_of(declining("The handbook does not mention opening hours."), {}, {POINT: NOT_THERE}),
    "over-refused": evidence_of(declining(), {}, {POINT: LOST}),
    "passage missing": evidence_of(response={AT_ELEVEN: NOWHERE}, reference={POINT: NOT_THERE}),
    "misled by a passage": evidence_of(
        response={AT_ELEVEN: IN_SECOND}, reference={POINT: {**LOST, FIRST: 1.0, SECOND: 0.0}}
    ),
    "contradicted": evidence_of(response={"The shop opens at ten.": NOWHERE}, reference={POINT: LOST}),
    "unsupported": evidence_of(response={"Dogs must wear a muzzle indoors.": NOWHERE, POINT: RIGHT}),
    "passage ignored": evidence_of(response={"Delft has canals.": ASIDE}, reference={POINT: LOST}),
    "should have refused": evidence_of(replace(ROW, reference=None), ratings=rating_of("no")),
}


def test_each_class_has_a_row() -> None:
    for name in [each.name for each in CLASSES]:
        found = diagnose(EXAMPLES[name], EVERYTHING)
        assert (found.name, found.reason) == (name, None), name


def test_a_refusal_where_nothing_was_found_is_due_to_the_index() -> None:
    missing = evidence_of(declining(), {}, {POINT: NOT_THERE})
    assert diagnose(missing, EVERYTHING).name == "passage missing"
    nothing = evidence_of(replace(declining(), retrieved_contexts=()), {}, {POINT: NOT_THERE})
    assert diagnose(nothing, EVERYTHING).name == "passage missing"
    assert PASSAGE_MISSING.part is SystemPart.INDEX


def test_a_right_answer_without_its_passage_is_due_to_the_index() -> None:
    known_by_heart = evidence_of(
        response={POINT: {ALL_CONTEXTS: 0.0, BY_REFERENCE: 1.0}},
        reference={POINT: {ALL_CONTEXTS: 0.0, BY_RESPONSE: 1.0}},
    )
    assert diagnose(known_by_heart, EVERYTHING).name == "passage missing"


def test_a_reference_beyond_the_passages_is_no_fault_of_a_whole_answer() -> None:
    whole = evidence_of(reference={POINT: {ALL_CONTEXTS: 0.0, BY_RESPONSE: 1.0}})
    assert diagnose(whole, EVERYTHING).name == "answered"


def test_a_claim_on_another_matter_misleads_nobody() -> None:
    aside = evidence_of(
        response={"Breda has a cathedral with a tall tower.": IN_SECOND},
        reference={POINT: {**LOST, FIRST: 1.0, SECOND: 0.0}},
    )
    assert diagnose(aside, EVERYTHING).name == "passage ignored"


def test_the_judge_is_asked_before_the_forms() -> None:
    evasive = declining(text="That is for someone else to say.")
    ratings = {"over_refusal": [Rating(RESPONSE_ANSWERS, "no"), Rating(REFERENCE_ANSWERS, "yes")]}
    by_judge = diagnose(evidence_of(evasive, {}, {POINT: LOST}, ratings=ratings), EVERYTHING)
    assert (by_judge.name, by_judge.is_judged_refusal) == ("over-refused", True)
    by_forms = diagnose(evidence_of(evasive, {}, {POINT: LOST}), EVERYTHING)
    assert (by_forms.name, by_forms.is_judged_refusal) == ("passage ignored", False)
    noncommittal = evidence_of(evasive, {}, {POINT: LOST}, questions=[Question("When?", noncommittal=True)])
    assert diagnose(noncommittal, EVERYTHING).name == "over-refused"


def test_the_kind_of_a_refusal_is_that_of_its_form() -> None:
    kinds = {
        "I do not know.": RefusalKind.NOTHING_FOUND,
        "I can't help with that.": RefusalKind.POLICY_REFUSAL,
        "Which shop do you mean?": RefusalKind.CLARIFYING_QUESTION,
    }
    for text, kind in kinds.items():
        found = diagnose(evidence_of(declining(text=text), {}, {POINT: LOST}), EVERYTHING)
        assert (found.name, found.refusal_kind) == ("over-refused", kind)
    assert diagnose(evidence_of(), EVERYTHING).refusal_kind is None


def test_the_judge_decides_whether_a_form_is_a_refusal() -> None:
    ratings = {"over_refusal": [Rating(RESPONSE_ANSWERS, "yes"), Rating(REFERENCE_ANSWERS, "yes")]}
    answered = diagnose(evidence_of(declining(), {}, {POINT: LOST}, ratings=ratings), EVERYTHING)
    assert (answered.declines, answered.refusal_kind) == (False, None)
    ratings = {"over_refusal": [Rating(RESPONSE_ANSWERS, "no"), Rating(REFERENCE_ANSWERS, "yes")]}
    evasive = declining(text="That is for someone else to say.")
    other = diagnose(evidence_of(evasive, {}, {POINT: LOST}, ratings=ratings), EVERYTHING)
    assert (other.declines, other.refusal_kind) == (True, None)


def test_an_unusable_rating_leaves_it_to_the_forms() -> None:
    ratings = {"over_refusal": [Rating(RESPONSE_ANSWERS, None)]}
    assert diagnose(evidence_of(declining(), {}, {POINT: LOST}, ratings=ratings), EVERYTHING).name == "over-refused"


@pytest.mark.parametrize(
    ("products", "name"),
    [
        ({Product.RESPONSE_CLAIMS_BY_CONTEXTS}, "contradicted"),
        ({Product.REFERENCE_CLAIMS_BY_CONTEXTS, Product.REFERENCE_CLAIMS_BY_RESPONSE}, "passage ignored"),
        ({Product.RESPONSE_CLAIMS_BY_REFERENCE, Product.REFERENCE_CLAIMS_BY_RESPONSE}, "contradicted"),
        ({Product.REFERENCE_CLAIMS_BY_RESPONSE}, None),
        ({Product.USEFULNESS_FOR_REFERENCE}, None),
        (set(), None),
    ],
)
def test_verdicts_that_a_run_lacks_are_named(products: set[Product], name: str | None) -> None:
    found = diagnose(EXAMPLES["contradicted"], closure(products))
    assert found.name == name
    assert (found.reason is None) == (name is not None)
    assert set(found.lacking).isdisjoint(products)
    if name is None:
        assert found.reason is not None
        assert found.reason.startswith("lacks verdicts: ")


def test_a_row_without_reference_is_diagnosed_by_its_passages() -> None:
    plain = replace(ROW, reference=None)
    faithful = closure([Product.RESPONSE_CLAIMS_BY_CONTEXTS])
    assert diagnose(judge(plain, {Side.RESPONSE: {POINT: {ALL_CONTEXTS: 1.0}}}), faithful).name == "answered"
    assert diagnose(judge(plain, {Side.RESPONSE: {AT_ELEVEN: {ALL_CONTEXTS: 0.0}}}), faithful).name == "contradicted"
    nothing = replace(plain, retrieved_contexts=())
    assert diagnose(judge(nothing, {Side.RESPONSE: {POINT: {ALL_CONTEXTS: 0.0}}}), faithful).name == "passage missing"


@pytest.mark.parametrize(("relevant", "name"), [(1.0, "over-refused"), (0.0, "rightly refused")])
def test_without_reference_a_sentence_that_helps_makes_a_refusal_wrong(relevant: float, name: str) -> None:
    sentences = {Side.CONTEXT_SENTENCE: {"The shop opens at nine.": {"user_input": relevant}}}
    row = replace(ROW, reference=None, response="I do not know.")
    found = diagnose(judge(row, sentences, VerdictKind.RELEVANCE), closure([Product.SENTENCE_RELEVANCE]))
    assert found.name == name
    unknown = diagnose(judge(row, {}), closure([Product.RESPONSE_CLAIMS_BY_CONTEXTS]))
    assert unknown.reason == "lacks verdicts: relevance of context sentences"


def test_a_failed_verdict_calls_nothing_good() -> None:
    open_question = evidence_of(response={POINT: {ALL_CONTEXTS: None, BY_REFERENCE: 1.0}})
    assert diagnose(open_question, EVERYTHING).reason == reasons.NO_USABLE_VERDICT
    certain = evidence_of(response={POINT: {ALL_CONTEXTS: None, BY_REFERENCE: 1.0}}, reference={POINT: LOST})
    assert diagnose(certain, EVERYTHING).name == "passage ignored"
    gap = evidence_of(gaps={Product.RESPONSE_CLAIMS: Score.failed("cut off")})
    assert diagnose(gap, EVERYTHING).reason == reasons.NO_USABLE_VERDICT


@pytest.mark.parametrize(
    ("response", "reason"), [(None, "no response"), (" ", "empty response"), ("Ah.", reasons.NO_RESPONSE_CLAIMS)]
)
def test_rows_without_a_statement_have_a_reason(response: str | None, reason: str) -> None:
    row = replace(ROW, response=response, reference=None)
    assert diagnose(judge(row, {}), closure([Product.RESPONSE_CLAIMS_BY_CONTEXTS])).reason == reason


def test_a_probability_counts_as_yes_from_one_half_on() -> None:
    likely = evidence_of(response={POINT: {ALL_CONTEXTS: 0.5, BY_REFERENCE: 0.9}})
    assert diagnose(likely, EVERYTHING).name == "answered"
    unlikely = evidence_of(response={POINT: {ALL_CONTEXTS: 0.49, BY_REFERENCE: 0.1}})
    assert diagnose(unlikely, EVERYTHING).name == "contradicted"


def test_lost_answers_have_a_part_and_kept_ones_do_not() -> None:
    for each in CLASSES:
        assert each.is_lost == (each.part is not None and each.name != "badly ranked"), each.name


POINTED = closure([Product.KEY_POINTS_BY_RESPONSE, Product.RESPONSE_CLAIMS_BY_CONTEXTS])
HELD: Supports = {BY_RESPONSE: 1.0}
LEFT_OUT: Supports = {BY_RESPONSE: 0.0, ALL_CONTEXTS: 1.0}
NOT_FOUND: Supports = {BY_RESPONSE: 0.0, ALL_CONTEXTS: 0.0}


def with_points(points: dict[str, Supports], okay: tuple[str, ...] = (), **columns: Any) -> Evidence:
    """A row without a reference whose key points have these verdicts, and whose only claim has support."""
    given = tuple(KeyPoint(text, Importance.OKAY if text in okay else Importance.VITAL) for text in points)
    sample = replace(ROW, reference=None, key_points=given, **columns)
    importances = {f"{Side.KEY_POINT}:{i}": point.importance for i, point in enumerate(given)}
    claims = {Side.RESPONSE: {"It opens at nine.": RIGHT}, Side.KEY_POINT: points}
    return judge(sample, claims, importances=importances)


@pytest.mark.parametrize(
    ("evidence", "expected"),
    [
        (with_points({"a": HELD, "b": HELD}), "answered"),
        (with_points({"a": HELD, "b": LEFT_OUT}), "passage ignored"),
        (with_points({"a": HELD, "b": NOT_FOUND}), "passage missing"),
        (with_points({"a": LEFT_OUT, "b": NOT_FOUND}), "passage missing"),
        (with_points({"a": HELD, "b": NOT_FOUND}, okay=("b",)), "answered"),
        (with_points({"a": LEFT_OUT}, response="I do not know."), "over-refused"),
        (with_points({"a": NOT_FOUND}, response="I do not know."), "passage missing"),
        (with_points({"a": {BY_RESPONSE: 0.0}}, retrieved_contexts=()), "passage missing"),
        (with_points({"a": HELD, "b": {BY_RESPONSE: None}}), None),
        (with_points({"a": HELD, "b": {BY_RESPONSE: 0.0, ALL_CONTEXTS: None}}), None),
    ],
)
def test_vital_key_points_take_the_place_of_a_reference(evidence: Evidence, expected: str | None) -> None:
    assert diagnose(evidence, POINTED).name == expected


ALONE = replace(ROW, reference=None)
REFUSING = replace(ALONE, response="I could not find that.")
CLAIMED = closure([Product.RESPONSE_CLAIMS_BY_CONTEXTS])
BY_REFERENCES = closure([Product.REFERENCE_CLAIMS_BY_RESPONSE])


@pytest.mark.parametrize(
    ("evidence", "products", "sufficient", "expected"),
    [
        (evidence_of(ALONE, {AT_ELEVEN: NOWHERE}), CLAIMED, "no", "passage missing"),
        (evidence_of(ALONE, {AT_ELEVEN: NOWHERE}), CLAIMED, "yes", "contradicted"),
        (evidence_of(ALONE), CLAIMED, "no", "should have refused"),
        (evidence_of(ALONE), CLAIMED, "yes", "answered"),
        (evidence_of(ALONE), CLAIMED, None, None),
        (evidence_of(REFUSING, {}), CLAIMED, "no", "rightly refused"),
        (evidence_of(REFUSING, {}), CLAIMED, "yes", "over-refused"),
        (evidence_of(reference={POINT: NOT_THERE}), BY_REFERENCES, "no", "passage missing"),
        (evidence_of(reference={POINT: LOST}), BY_REFERENCES, "yes", "passage ignored"),
        (evidence_of(), BY_REFERENCES, "no", "answered"),
        (evidence_of(declining(), {}), BY_REFERENCES, "no", "passage missing"),
        (evidence_of(declining(), {}), BY_REFERENCES, "yes", "over-refused"),
        (evidence_of(replace(ROW, reference="The handbook does not say.")), CLAIMED, "no", "should have refused"),
        (evidence_of(reference={POINT: LOST}), EVERYTHING, "no", "passage ignored"),
    ],
)
def test_a_wrong_answer_from_sufficient_passages_is_due_to_the_generator(
    evidence: Evidence, products: frozenset[Product], sufficient: str | None, expected: str | None
) -> None:
    assert diagnose(replace(evidence, ratings=rating_of(sufficient)), products).name == expected


def test_a_judge_that_cannot_rate_leaves_the_diagnosis_as_it_is() -> None:
    assert diagnose(replace(EXAMPLES["answered"], ratings=rating_of(None, unable=True)), EVERYTHING).name == "answered"
    assert (
        diagnose(replace(EXAMPLES["answered"], ratings=rating_of(None)), EVERYTHING).reason == reasons.NO_USABLE_VERDICT
    )


def test_lost_points_are_due_to_the_index_or_the_generator() -> None:
    evidence = with_points({"a": HELD, "b": LEFT_OUT, "c": NOT_FOUND, "d": {BY_RESPONSE: 0.0}}, okay=("b",))
    index, generator = SystemPart.INDEX, SystemPart.GENERATOR
    assert [(point.claim_id, point.part) for point in find_lost_points(evidence)] == [
        ("key_point:1", generator),
        ("key_point:2", index),
        ("key_point:3", None),
    ]
    nothing = replace(evidence, sample=replace(evidence.sample, retrieved_contexts=()))
    assert {point.part for point in find_lost_points(nothing)} == {index}


def metric_with_class(score: Score, name: str = "shouted", before: str = "contradicted") -> MetricRequest:
    """A metric whose score is the same for all rows, with a class for those above 0."""
    own = ScoreClass(
        name=name,
        meaning="The response shouts.",
        part=SystemPart.GENERATOR,
        is_lost=True,
        applies=lambda score: bool(score.value),
        before=before,
    )
    return Metric(
        name=name.replace(" ", "_"),
        summary="Whether the response shouts.",
        source="our editors",
        family="house",
        columns=constant("response"),
        products=constant(),
        compute=lambda _request, _evidence: score,
        undefined={"quiet": "the response has no letters"},
        diagnosis=own,
    ).request()


def test_a_class_comes_with_a_metric_and_is_tried_where_it_says() -> None:
    loud = metric_with_class(Score.scored(1.0))
    names = [each.name for each in classes_of([loud, loud])]
    assert names[names.index("shouted") + 1] == "contradicted"
    assert len(names) == len(CLASSES) + 1
    found = [diagnose(EXAMPLES[name], EVERYTHING, [loud]).name for name in ("passage missing", "contradicted")]
    assert found == ["passage missing", "shouted"]
    assert diagnose(EXAMPLES["answered"], EVERYTHING, [loud]).name == "shouted"


@pytest.mark.parametrize("score", [Score.scored(0.0), Score.undefined("quiet")])
def test_a_row_that_is_not_in_the_class_of_a_metric_has_another(score: Score) -> None:
    for name in [each.name for each in CLASSES]:
        assert diagnose(EXAMPLES[name], EVERYTHING, [metric_with_class(score)]).name == name


def test_a_row_whose_score_failed_is_not_called_answered() -> None:
    failed = metric_with_class(Score.failed(reasons.NO_USABLE_VERDICT))
    found = diagnose(EXAMPLES["answered"], EVERYTHING, [failed])
    assert (found.name, found.reason) == (None, reasons.NO_USABLE_VERDICT)
    assert diagnose(EXAMPLES["contradicted"], EVERYTHING, [failed]).name == "contradicted"


@pytest.mark.parametrize(("name", "before"), [("answered", "contradicted"), ("shouted", "whispered")])
def test_a_class_with_the_name_of_another_or_without_a_place_is_refused(name: str, before: str) -> None:
    with pytest.raises(PluginError, match=f"has the class '{name}' before '{before}', wanted another name"):
        classes_of([metric_with_class(Score.scored(1.0), name, before)])
