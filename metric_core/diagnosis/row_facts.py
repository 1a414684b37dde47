"""Derive three-valued facts about a row, from which its diagnosis follows.

A fact is unknown where the run has not asked for the verdicts that it needs, or where the judge gave no usable one. A
verdict given as a probability counts as yes from 0.5 on.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property

from metric_core.diagnosis.overlap import SAME_MATTER, coverage, trigrams
from metric_core.diagnosis.three_valued import Fact, any_fact, any_known, both, negate
from metric_core.evidence import ALL_CONTEXTS, BY_REFERENCE, BY_RESPONSE, Evidence, context_premise
from metric_core.metrics.context_sufficiency import OF_CONTEXTS
from metric_core.metrics.refusals import REFERENCE_ANSWERS, RESPONSE_ANSWERS
from metric_core.prompts.judge_questions import NO, YES
from metric_core.records import Importance, Rating, Side, Support, VerdictKind
from metric_core.refusals.refusal_forms import declines, refusal_kind, split_rough_sentences
from metric_core.refusals.refusal_kinds import RefusalKind
from metric_core.stages import Product, closure

_YES = 0.5
_CLOSURES = {product: closure([product]) for product in Product}


@dataclass(eq=False)
class RowFacts:
    """The facts about one row; each is computed when it is first read.

    Args:
        evidence: Products of the row, with the verdicts as labels or as probabilities.
        products: Products that the run has asked for.
        lacking: Products that a fact needed and the run has not asked for; filled as facts are read.
        failed: Products that a fact needed and the judge gave no usable answer for; filled as facts are read.
    """

    evidence: Evidence
    products: frozenset[Product]
    lacking: dict[Product, None] = field(default_factory=dict)
    failed: dict[Product, None] = field(default_factory=dict)

    @property
    def has_reference(self) -> bool:
        """Whether the row has a reference that is not blank."""
        return bool((self.evidence.sample.reference or "").strip())

    @property
    def has_points(self) -> bool:
        """Whether it is known what a good answer says: vital key points, or else a reference."""
        return self._key_points is not None or self.has_reference

    @cached_property
    def declines(self) -> bool:
        """Whether the response declines to answer.

        The judge's answer counts if a metric has asked for it, or if the judge finds no claim in the response and
        calls every question regenerated from it noncommittal. Otherwise the forms of refusals decide.
        """
        answers = self._rating(RESPONSE_ANSWERS)
        return self._avoids_an_answer if answers is None else not answers

    @cached_property
    def refusal_kind(self) -> RefusalKind | None:
        """Kind of refusal that the response is by its form; None for an answer, and for a refusal of another form."""
        return self._form if self.declines else None

    @cached_property
    def reference_declines(self) -> bool:
        """Whether the reference says that the question has no answer."""
        answers = self._rating(REFERENCE_ANSWERS)
        return declines(self.evidence.sample.reference or "") if answers is None else not answers

    @property
    def is_judged_refusal(self) -> bool:
        """Whether a rating of the judge decided if the response declines."""
        return self._rating(RESPONSE_ANSWERS) is not None

    @cached_property
    def makes_claims(self) -> Fact:
        """Whether the response makes claims."""
        if not self._was_asked(Product.RESPONSE_CLAIMS):
            return None
        return self._read(Product.RESPONSE_CLAIMS) and bool(self.evidence.claims.get(Side.RESPONSE))

    @cached_property
    def nothing_retrieved(self) -> Fact:
        """Whether the row has no passages; unknown if the data has no column for them."""
        contexts = self.evidence.sample.retrieved_contexts
        return None if contexts is None else not any(text.strip() for text in contexts)

    @cached_property
    def claims_in_passages(self) -> Sequence[Fact] | None:
        """Whether the passages support each claim of the response."""
        return self._supports(Side.RESPONSE, ALL_CONTEXTS, Product.RESPONSE_CLAIMS_BY_CONTEXTS)

    @cached_property
    def claims_in_reference(self) -> Sequence[Fact] | None:
        """Whether the reference supports each claim of the response."""
        return self._supports(Side.RESPONSE, BY_REFERENCE, Product.RESPONSE_CLAIMS_BY_REFERENCE)

    @cached_property
    def points_in_passages(self) -> Sequence[Fact] | None:
        """Whether the passages support each vital key point, if points are judged, else each claim of the reference.

        It is unknown for a key point that the response states, unless a metric asks for it.
        """
        if self._key_points is not None:
            return self._points_by(ALL_CONTEXTS, self._key_points)
        if self.nothing_retrieved and Product.REFERENCE_CLAIMS_BY_CONTEXTS not in self.products:
            return (False,) if self.has_reference else None
        return self._supports(Side.REFERENCE, ALL_CONTEXTS, Product.REFERENCE_CLAIMS_BY_CONTEXTS)

    @cached_property
    def points_in_response(self) -> Sequence[Fact] | None:
        """Whether the response supports each vital key point, if points are judged, else each claim of a reference."""
        if self._key_points is not None:
            return self._points_by(BY_RESPONSE, self._key_points)
        return self._supports(Side.REFERENCE, BY_RESPONSE, Product.REFERENCE_CLAIMS_BY_RESPONSE)

    @cached_property
    def passages_help(self) -> Fact:
        """Whether a sentence of the passages helps to answer the user question."""
        if self.nothing_retrieved:
            return False
        if not self._was_asked(Product.SENTENCE_RELEVANCE):
            return None
        if not self._read(Product.SENTENCE_RELEVANCE):
            return None
        return any_fact(_is_yes(support) for support in self.evidence.relevance())

    @cached_property
    def is_sufficient(self) -> Fact:
        """Whether the question can be answered from the passages alone; unknown unless a metric asks the judge."""
        rated = self._rating(OF_CONTEXTS)
        if rated is None and any(each.template == OF_CONTEXTS and not each.unable for each in self._ratings):
            self.failed[Product.RATINGS] = None
        return rated

    @cached_property
    def has_answer(self) -> Fact:
        """Whether the passages hold an answer: a claim of the reference, or without one a sentence that helps.

        The judge's rating of the passages as a whole counts before a sentence, and where no claim has been judged.
        """
        if not self.has_points:
            return self.passages_help if self.is_sufficient is None else self.is_sufficient
        if self.reference_declines:
            return False
        points = self.points_in_passages
        return self.is_sufficient if points is None else any_fact(points)

    @cached_property
    def lost_points(self) -> Fact:
        """Whether the response lacks a claim of the reference."""
        if not self.has_points or self.reference_declines:
            return False
        points = self.points_in_response
        return None if points is None else any_fact(map(negate, points))

    @cached_property
    def unsupported_claims(self) -> Fact:
        """Whether the passages do not support a claim of the response."""
        claims = self.claims_in_passages
        return None if claims is None else any_fact(map(negate, claims))

    @cached_property
    def missing_points(self) -> Fact:
        """Whether the passages lack a claim of the reference, and the answer suffers from it.

        It suffers if the response lacks the same claim, or makes a claim that the passages do not support. If the run
        has not asked for that, what the passages lack is all that is known, and counts. Where no claims of a reference
        have been judged, passages lack something that are empty, or do not suffice by the judge's rating.
        """
        if not self.has_points:
            wrong = self.is_sufficient is False and self.unsupported_claims
            return True if self.nothing_retrieved or wrong else self.nothing_retrieved
        if self.reference_declines:
            return False
        passages, response = self.points_in_passages, self.points_in_response
        if passages is None and self.is_sufficient is False:
            return any_fact([self.lost_points, self.unsupported_claims])
        missing = None if passages is None else any_fact(map(negate, passages))
        if missing is not True or passages is None:
            return missing
        if response is None and Product.REFERENCE_CLAIMS_BY_RESPONSE not in self.products:
            return True
        if response is not None and len(response) == len(passages):
            lost = any_fact(both(negate(p), negate(r)) for p, r in zip(passages, response, strict=True))
        else:
            lost = self.lost_points
        return any_fact([lost, self.unsupported_claims])

    @cached_property
    def misleading_claims(self) -> Fact:
        """Whether a passage without any claim of the reference supports a claim that the reference does not support.

        The claim must be about the question: a claim about another matter is not a wrong answer to it.
        """
        contexts = self.evidence.sample.retrieved_contexts or ()
        wrong = self.claims_in_reference
        if not self.has_reference or self.reference_declines or not contexts:
            return False
        each = self._each_context
        if wrong is None or each is None:
            return None
        if False not in wrong:
            return False
        by_context, relevant = each
        matter = trigrams(f"{self.evidence.sample.user_input or ''} {self.evidence.sample.reference or ''}")
        found = [
            any_fact(both(supports[number], negate(relevant[i])) for i, supports in enumerate(by_context))
            for number, (claim, in_reference) in enumerate(zip(self._claims, wrong, strict=True))
            if in_reference is False and coverage(trigrams(claim), matter) >= SAME_MATTER
        ]
        return both(any_fact(found), True if self.lost_points is None else self.lost_points)

    @cached_property
    def contrary_claims(self) -> Fact:
        """Whether the response contradicts passages or reference: most of its unsupported claims do.

        A claim contradicts them if it has no support and a sentence of the passages or of the reference is about the
        same matter.
        """
        in_passages, in_reference = self.claims_in_passages, self.claims_in_reference
        if in_passages is None and (in_reference is None or self.lost_points is not True):
            return None
        passages = in_reference if in_passages is None else in_passages
        references = [None] * len(passages or ()) if in_reference is None else in_reference
        alone = [
            trigrams(claim)
            for claim, passage, reference in zip(self._claims, passages or (), references, strict=True)
            if passage is False and reference is not True
        ]
        if not alone:
            return False
        texts = (self.evidence.sample.reference or "", *(self.evidence.sample.retrieved_contexts or ()))
        sentences = [trigrams(sentence) for text in texts for sentence in split_rough_sentences(text)]
        contrary = sum(any(coverage(grams, other) >= SAME_MATTER for other in sentences) for grams in alone)
        return contrary > len(alone) - contrary

    @cached_property
    def ignored_points(self) -> Fact:
        """Whether the passages support a claim of the reference that the response lacks."""
        if self.lost_points is False:
            return False
        response, passages = self.points_in_response, self.points_in_passages
        if passages is None:
            return both(self.lost_points, self.is_sufficient)
        if response is None or len(response) != len(passages):
            return None
        return any_fact(both(p, negate(r)) for p, r in zip(passages, response, strict=True))

    @cached_property
    def is_unfounded(self) -> bool:
        """Whether the response answers from passages that do not suffice, and is not known to be right all the same."""
        is_right = self.has_points and not self.reference_declines and self.lost_points is False
        return self.is_sufficient is False and not self.declines and not is_right

    @cached_property
    def useful_passage_is_lower(self) -> Fact:
        """Whether the first passage is useless and a later one is useful."""
        useful = self._usefulness
        if useful is None:
            return None
        return both(negate(useful[0]), any_fact(useful[1:])) if useful else False

    @property
    def is_known_good(self) -> bool:
        """Whether enough is known to call an answer good: its claims have support, or it has those of the reference."""
        has_support = self.unsupported_claims is False and self.makes_claims is True
        states_points = self.has_points and not self.reference_declines and self.lost_points is False
        return has_support or states_points

    @cached_property
    def _key_points(self) -> Sequence[str] | None:
        """The vital key points of the row; None if it has none, or the run does not judge them."""
        if Product.KEY_POINTS_BY_RESPONSE not in self.products:
            return None
        points = self.evidence.claims.get(Side.KEY_POINT, {})
        return tuple(point for point in points if self.evidence.importance(point) is Importance.VITAL) or None

    def _points_by(self, premise: str, points: Sequence[str]) -> Sequence[Fact] | None:
        if premise == ALL_CONTEXTS and self.nothing_retrieved is not False:
            return None if self.nothing_retrieved is None else (False,) * len(points)
        by_response = [self.evidence.verdicts.get((VerdictKind.SUPPORT, point, BY_RESPONSE)) for point in points]
        found = [self.evidence.verdicts.get((VerdictKind.SUPPORT, point, premise)) for point in points]
        if any(known is None and not stated for known, stated in zip(found, by_response, strict=True)):
            self.failed[Product.KEY_POINTS_BY_RESPONSE] = None
        return [_is_yes(support) for support in found]

    @property
    def _claims(self) -> Sequence[str]:
        return tuple(self.evidence.claims.get(Side.RESPONSE, {}).values())

    @cached_property
    def _avoids_an_answer(self) -> bool:
        questions = self.evidence.questions or ()
        if self.makes_claims is False and questions and all(question.noncommittal for question in questions):
            return True
        return self._form is not None

    @cached_property
    def _form(self) -> RefusalKind | None:
        return refusal_kind(self.evidence.sample.response or "")

    @cached_property
    def _each_context(self) -> tuple[Sequence[Sequence[Fact]], Sequence[Fact]] | None:
        """The support of each claim of the response by each passage, and whether each passage supports the reference.

        A verdict that noise sensitivity did not need is unknown; a passage without any counts as one that does.
        """
        sides = (
            (Side.RESPONSE, Product.RESPONSE_CLAIMS_BY_EACH_CONTEXT),
            (Side.REFERENCE, Product.REFERENCE_CLAIMS_BY_EACH_CONTEXT),
        )
        if Product.CLAIMS_BY_EACH_CONTEXT not in self.products and not all(p in self.products for _, p in sides):
            self.lacking[Product.CLAIMS_BY_EACH_CONTEXT] = None
            return None
        count = len(self.evidence.sample.retrieved_contexts or ())
        response, reference = (
            [
                [
                    _is_yes(self.evidence.verdicts.get((VerdictKind.SUPPORT, claim, context_premise(i))))
                    for claim in self.evidence.claims.get(side, {})
                ]
                for i in range(count)
            ]
            for side, _ in sides
        )
        return response, [any_fact(verdicts) if any_known(verdicts) else True for verdicts in reference]

    @cached_property
    def _usefulness(self) -> Sequence[Fact] | None:
        kinds = {
            VerdictKind.USEFULNESS_FOR_REFERENCE: Product.USEFULNESS_FOR_REFERENCE,
            VerdictKind.USEFULNESS_FOR_RESPONSE: Product.USEFULNESS_FOR_RESPONSE,
        }
        if self.evidence.sample.retrieved_contexts is None:
            return None
        for kind, product in kinds.items():
            if product in self.products and self._read(product):
                return [_is_yes(support) for support in self.evidence.usefulness(kind)]
        self._was_asked(Product.USEFULNESS_FOR_REFERENCE)
        return None

    def _supports(self, side: Side, premise: str, product: Product) -> Sequence[Fact] | None:
        sample = self.evidence.sample
        column = {ALL_CONTEXTS: sample.retrieved_contexts, BY_REFERENCE: sample.reference, BY_RESPONSE: sample.response}
        if side is Side.REFERENCE and not self.has_reference:
            return None
        if column[premise] is None or (premise == BY_REFERENCE and not self.has_reference):
            return None
        if not self._was_asked(product) or not self._read(product):
            return None
        facts = [_is_yes(support) for support in self.evidence.supports(side, premise, product)]
        if None in facts:
            self.failed[product] = None
        return facts

    def _was_asked(self, product: Product) -> bool:
        if product not in self.products:
            self.lacking[product] = None
        return product in self.products

    def _read(self, product: Product) -> bool:
        """Return whether the row has a product that the run has asked for."""
        if any(part in _CLOSURES[product] for part in self.evidence.gaps):
            self.failed[product] = None
            return False
        return True

    def _rating(self, template: str) -> bool | None:
        labels = {rating.value for rating in self._ratings if rating.template == template} & {YES, NO}
        return None if len(labels) != 1 else labels == {YES}

    @property
    def _ratings(self) -> Sequence[Rating]:
        return [rating for given in self.evidence.ratings.values() for rating in given]


def _is_yes(support: Support) -> Fact:
    return None if support is None else support >= _YES
