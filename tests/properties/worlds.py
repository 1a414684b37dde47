"""Generated rows with all results of the stages, and transformations of such rows.

A world is built of parts that belong together (a claim with all its verdicts, a context with its usefulness), so
that a test can reorder, repeat or add a part and the evidence stays consistent.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from random import Random
from typing import Any, TypeVar

from hypothesis import strategies as st

from metric_core.declarations.metric import MetricRequest
from metric_core.evidence import ALL_CONTEXTS, BY_REFERENCE, BY_RESPONSE, BY_USER_INPUT, Evidence, context_premise
from metric_core.prompts.judge_questions import ChoiceQuestion, RatingRequest
from metric_core.records import KeyPoint, Question, Rating, Sample, Score, Side, Support, VerdictKind
from metric_core.stages import Product

T = TypeVar("T")
GRADES = {"a": 2.0, "b": 0.0, "c": 1.0}
"""Judgments of passages by their id; any other is unjudged."""
SCALE = {"score0_description": "none", "score0.5_description": "part", "score2_description": "all"}


@dataclass(frozen=True)
class Claim:
    """A claim with its verdicts: by all contexts, by the other text, and by each context."""

    by_contexts: Support
    by_other: Support
    by_context: tuple[Support, ...]


@dataclass(frozen=True)
class Context:
    """A retrieved context with its usefulness for reference and response, and the names of those who may see it."""

    text: str
    id: str
    for_reference: Support
    for_response: Support
    acl: tuple[str, ...] = ()


@dataclass(frozen=True)
class World:
    """A row with all results of the stages."""

    user_input: str = ""
    response: str = ""
    reference: str = ""
    contexts: tuple[Context, ...] = ()
    reference_contexts: tuple[tuple[str, str], ...] = ()
    response_claims: tuple[Claim, ...] = ()
    reference_claims: tuple[Claim, ...] = ()
    sentences: tuple[Support, ...] = ()
    reference_entities: tuple[str, ...] = ()
    context_entities: tuple[str, ...] = ()
    questions: tuple[tuple[Question, float | None], ...] = ()
    similarity: float | None = None
    picks: tuple[int | None, ...] = ()
    asker: tuple[str, ...] = ()
    figure: float = 0.0
    absent: frozenset[str] = frozenset()

    @property
    def sample(self) -> Sample:
        """Return the row."""
        columns: dict[str, Any] = {
            "user_input": self.user_input,
            "response": self.response,
            "retrieved_contexts": tuple(context.text for context in self.contexts),
            "reference": self.reference,
            "reference_contexts": tuple(text for text, _ in self.reference_contexts),
            "retrieved_context_ids": tuple(context.id for context in self.contexts),
            "reference_context_ids": tuple(name for _, name in self.reference_contexts),
            "rubrics": SCALE,
            "retrieved_context_scores": tuple(1 / rank for rank in range(1, len(self.contexts) + 1)),
            "relevance_judgments": GRADES if self.reference_contexts else {},
            "key_points": (KeyPoint(""),) * len(self.reference_claims),
            **dict.fromkeys(("session_id", "conversation", "earlier_turns"), "User: Hi!"),
            **dict.fromkeys(("earlier_contexts", "tool_results", "earlier_answers"), ()),
            "extras": {
                **dict.fromkeys(("latency", "tokens", "cost", "priority"), self.figure),
                "asker": list(self.asker),
                "acl": [list(context.acl) for context in self.contexts],
                "retrieved_context_dates": [f"2024-01-{day:02}" for day in range(1, len(self.contexts) + 1)],
            },
        }
        return Sample(row_id="row", **{name: held for name, held in columns.items() if name not in self.absent})

    def evidence(self, request: MetricRequest) -> Evidence:
        """Return the evidence that the stages hand to the metric."""
        similarity = self.similarity
        across = None if similarity is None else abs(similarity)
        evidence = Evidence(
            self.sample,
            claims={side: dict.fromkeys(_ids(side, claims), "") for side, claims in self._claims().items()},
            verdicts=self._verdicts(),
            entities={Side.REFERENCE: self.reference_entities, Side.CONTEXT: self.context_entities},
            questions=[question for question, _ in self.questions],
            question_similarities=[cosine for _, cosine in self.questions],
            answer_similarities={
                Product.ANSWER_SIMILARITY: similarity,
                Product.ANSWER_SIMILARITY_BY_CROSS_ENCODER: across,
            },
            ratings={request.key: self._ratings(request)},
        )
        wanted = [each for each in request.verdict_requests(evidence) if each.premise_text is not None]
        own = zip(wanted, self.response_claims, strict=False)
        given = {(VerdictKind.SUPPORT, *each.key): claim.by_other for each, claim in own}
        return replace(evidence, verdicts={**evidence.verdicts, **given})

    def score(self, request: MetricRequest) -> Score:
        """Return the score of a metric for this world."""
        return request.score(self.evidence(request))

    def _claims(self) -> dict[Side, tuple[Claim, ...]]:
        return {
            Side.RESPONSE: self.response_claims,
            Side.REFERENCE: self.reference_claims,
            Side.REFERENCE_SENTENCE: self.reference_claims,
            Side.KEY_POINT: self.reference_claims,
            Side.CONTEXT_SENTENCE: tuple(Claim(support, support, ()) for support in self.sentences),
        }

    def _verdicts(self) -> dict[tuple[VerdictKind, str, str], Support]:
        found: dict[tuple[VerdictKind, str, str], Support] = {}
        for side, claims in self._claims().items():
            other = BY_REFERENCE if side is Side.RESPONSE else BY_RESPONSE
            for name, claim in zip(_ids(side, claims), claims, strict=True):
                found[VerdictKind.SUPPORT, name, ALL_CONTEXTS] = claim.by_contexts
                found[VerdictKind.SUPPORT, name, other] = claim.by_other
                found[VerdictKind.PARTIAL_SUPPORT, name, other] = claim.by_other
                found[VerdictKind.RELEVANCE, name, BY_USER_INPUT] = claim.by_other
                for i, support in enumerate(claim.by_context):
                    found[VerdictKind.SUPPORT, name, context_premise(i)] = support
        for i, context in enumerate(self.contexts):
            found[VerdictKind.USEFULNESS_FOR_REFERENCE, "", context_premise(i)] = context.for_reference
            found[VerdictKind.USEFULNESS_FOR_RESPONSE, "", context_premise(i)] = context.for_response
        return found

    def _ratings(self, request: MetricRequest) -> list[Rating]:
        asked = request.rating_requests(self.sample)
        if isinstance(asked, Score):
            return []
        votes = [rating for rating in asked for _ in range(_votes(rating))]
        picks = [*self.picks, *[None] * len(votes)]
        return [Rating(rating.template, _answer(rating, pick)) for rating, pick in zip(votes, picks, strict=False)]


def _ids(side: Side, claims: tuple[Claim, ...]) -> list[str]:
    return [f"{side}:{i}" for i in range(len(claims))]


def _votes(rating: RatingRequest) -> int:
    return rating.question.votes if isinstance(rating.question, ChoiceQuestion) else 1


def _answer(rating: RatingRequest, pick: int | None) -> str | float | None:
    """Return a usable answer to the question; None if the pick is None."""
    if pick is None:
        return None
    if isinstance(rating.question, ChoiceQuestion):
        return rating.question.labels[pick % len(rating.question.labels)]
    properties = rating.question.schema["properties"]
    wanted = properties.get("value") or properties["score"]
    if "enum" in wanted:
        allowed: Sequence[str | float] = wanted["enum"]
        return allowed[pick % len(allowed)]
    least, greatest = float(wanted.get("minimum", 0)), float(wanted.get("maximum", 1))
    return greatest if pick % 2 else least


BINARY: st.SearchStrategy[float] = st.sampled_from([0.0, 1.0])
PROBABILITY: st.SearchStrategy[float] = BINARY | st.floats(0, 1, allow_subnormal=False)
_TEXT = st.sampled_from(["", " ", "tea", "The tea is cold.", "the tea", "rain", "Rain in May."])
_GROUPS = st.lists(st.sampled_from(["hr", "it", "*"]), max_size=2).map(tuple)
_NAMES = st.lists(st.sampled_from(["Arden", "the Arden", "Ida Morrow", "1901", "Wend's", "U.S."]), max_size=6)


@st.composite
def worlds(draw: st.DrawFn, support: st.SearchStrategy[float] = PROBABILITY, least: int = 0) -> World:
    """Generate worlds without failed verdicts, with at least `least` parts of everything."""
    contexts = draw(st.integers(least, 4))
    claim = st.builds(Claim, support, support, st.tuples(*[support] * contexts))
    claims = st.lists(claim, min_size=least, max_size=4).map(tuple)
    names = st.sampled_from("abcd")
    context = st.builds(Context, _TEXT, names, support, support, _GROUPS)
    question = st.builds(Question, _TEXT, st.booleans())
    asked = st.tuples(question, st.floats(-1, 1, allow_subnormal=False))
    return World(
        user_input=draw(_TEXT),
        response=draw(_TEXT),
        reference=draw(_TEXT),
        contexts=draw(st.tuples(*[context] * contexts)),
        reference_contexts=tuple(draw(st.lists(st.tuples(_TEXT, names), min_size=least, max_size=4))),
        response_claims=draw(claims),
        reference_claims=draw(claims),
        sentences=tuple(draw(st.lists(support, min_size=least, max_size=5))),
        reference_entities=tuple(draw(_NAMES)),
        context_entities=tuple(draw(_NAMES)),
        questions=tuple(draw(st.lists(asked, min_size=least, max_size=4))),
        similarity=draw(st.floats(-1, 1, allow_subnormal=False)),
        picks=tuple(draw(st.lists(st.integers(0, 9), min_size=5, max_size=5))),
        asker=draw(_GROUPS),
        figure=draw(st.floats(-1, 1e6)),
    )


def shuffle_world(world: World, random: Random) -> World:
    """Return the world with all unordered parts in another order; contexts keep their ranks."""

    def mixed(parts: tuple[T, ...]) -> tuple[T, ...]:
        return tuple(random.sample(parts, len(parts)))

    return replace(
        world,
        reference_contexts=mixed(world.reference_contexts),
        response_claims=mixed(world.response_claims),
        reference_claims=mixed(world.reference_claims),
        sentences=mixed(world.sentences),
        reference_entities=mixed(world.reference_entities),
        context_entities=mixed(world.context_entities),
        questions=mixed(world.questions),
    )


def rerank(world: World, order: list[int]) -> World:
    """Return the world with its contexts in another order of ranks."""

    def follow(claims: tuple[Claim, ...]) -> tuple[Claim, ...]:
        return tuple(replace(claim, by_context=tuple(claim.by_context[i] for i in order)) for claim in claims)

    return replace(
        world,
        contexts=tuple(world.contexts[i] for i in order),
        response_claims=follow(world.response_claims),
        reference_claims=follow(world.reference_claims),
    )


def double_parts(world: World) -> World:
    """Return the world with all unordered parts twice; contexts are unchanged."""
    return replace(
        world,
        reference_contexts=world.reference_contexts * 2,
        response_claims=world.response_claims * 2,
        reference_claims=world.reference_claims * 2,
        sentences=world.sentences * 2,
        reference_entities=world.reference_entities * 2,
        context_entities=world.context_entities * 2,
        questions=world.questions * 2,
    )


def with_one_more(world: World, support: float) -> World:
    """Return the world with one more claim on each side and one more sentence, with this support by everything."""
    claim = Claim(support, support, tuple(support for _ in world.contexts))
    return replace(
        world,
        response_claims=(*world.response_claims, claim),
        reference_claims=(*world.reference_claims, claim),
        sentences=(*world.sentences, support),
    )


def raise_support(world: World, support: float) -> World:
    """Return the world with the support of the first claim of each side and the first sentence raised to a minimum."""

    def at_least(claims: tuple[Claim, ...]) -> tuple[Claim, ...]:
        first, *others = claims
        by_contexts, by_other = (max(known or 0.0, support) for known in (first.by_contexts, first.by_other))
        return (replace(first, by_contexts=by_contexts, by_other=by_other), *others)

    first, *others = world.sentences
    return replace(
        world,
        response_claims=at_least(world.response_claims),
        reference_claims=at_least(world.reference_claims),
        sentences=(max(first or 0.0, support), *others),
    )
