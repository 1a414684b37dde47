"""Properties of the metrics of citations, whatever a response cites and a judge says.

A judge is consistent here: a claim has facts, each passage has some of them, and passages support a claim that has all
its facts in one of them or in all together.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from metric_core.declarations.metric import MetricRequest
from metric_core.evidence import ALL_CONTEXTS, Evidence
from metric_core.joint_contexts import contexts_of
from metric_core.records import Place, Sample, Score, Side, Status, VerdictKind
from tests.properties.sets import CITING, REQUESTS, requests_of

FACTS = frozenset(range(4))


@dataclass(frozen=True)
class Answer:
    """A response of one claim a sentence.

    Args:
        passages: The facts of each retrieved passage.
        claims: The facts of each claim, and the numbers that it cites, from 1.
    """

    passages: tuple[frozenset[int], ...]
    claims: tuple[tuple[frozenset[int], tuple[int, ...]], ...]

    def evidence(self) -> Evidence:
        """Return the row before any verdict."""
        texts = tuple(f"{number}: {sorted(facts)}" for number, facts in enumerate(self.passages))
        places = {
            f"{side}:{number}": Place(0, 1, number, tuple(map(str, cited)))
            for number, (_, cited) in enumerate(self.claims)
            for side in (Side.RESPONSE, Side.RESPONSE_SENTENCE)
        }
        sides = {side: {f"{side}:{i}": "" for i in range(len(self.claims))} for side in _SIDES}
        return Evidence(Sample("row", response="It.", retrieved_contexts=texts), claims=sides, places=places)

    def supports(self, claim: str, premise: str, *, in_part: bool = False) -> float:
        """Return whether the passages of a premise have the facts of a claim, or one of them."""
        facts, _ = self.claims[int(claim.partition(":")[2])]
        chosen = range(len(self.passages)) if premise == ALL_CONTEXTS else contexts_of(premise)
        held = facts & frozenset().union(*(self.passages[index] for index in chosen))
        return float(bool(held) if in_part else held == facts)

    def ask_and_score(self, request: MetricRequest) -> tuple[Score, int]:
        """Return the score, and how many verdicts the metric needed."""
        evidence = self.evidence()
        while True:
            wanted = request.verdict_requests(evidence)
            verdicts = {(each.kind, *each.key): self.supports(*each.key) for each in wanted}
            if verdicts.keys() <= evidence.verdicts.keys():
                return request.score(evidence), len(verdicts)
            verdicts |= {
                (VerdictKind.PARTIAL_SUPPORT, *each.key): self.supports(*each.key, in_part=True)
                for each in wanted
                if each.has_levels
            }
            evidence = replace(evidence, verdicts=verdicts)

    def value(self, name: str, **parameters: str | bool) -> float:
        """Return the value of a metric, 0 where it is undefined."""
        (request,) = [one for one in REQUESTS[name] if parameters.items() <= dict(one.parameters).items()][:1]
        return self.ask_and_score(request)[0].value or 0.0

    def citing(self, claim: int, cited: Sequence[int]) -> "Answer":
        """Return the answer with other citations of a claim."""
        claims = list(self.claims)
        claims[claim] = (claims[claim][0], tuple(cited))
        return replace(self, claims=tuple(claims))


_SIDES = (Side.RESPONSE, Side.RESPONSE_SENTENCE)
_facts = st.frozensets(st.sampled_from(sorted(FACTS)), min_size=1)


@st.composite
def answers(draw: st.DrawFn) -> Answer:
    """Generate answers with claims that cite existing and missing passages."""
    passages = tuple(draw(st.lists(_facts, min_size=1, max_size=5)))
    numbers = st.lists(st.integers(1, len(passages) + 1), max_size=4, unique=True).map(tuple)
    claims = st.lists(st.tuples(_facts, numbers), min_size=1, max_size=4).map(tuple)
    return Answer(passages, draw(claims))


@given(answers(), st.data())
def test_removing_a_marker_never_raises_the_recall(answer: Answer, data: st.DataObject) -> None:
    claim = data.draw(st.integers(0, len(answer.claims) - 1))
    cited = answer.claims[claim][1]
    removed = data.draw(st.sampled_from(cited or (0,)))
    without = answer.citing(claim, [number for number in cited if number != removed])
    for unit in ("claim", "sentence"):
        assert without.value("citation_recall", unit=unit) <= answer.value("citation_recall", unit=unit)


@given(answers(), st.data())
def test_one_more_supporting_marker_never_lowers_recall_nor_raises_misattribution(
    answer: Answer, data: st.DataObject
) -> None:
    claim = data.draw(st.integers(0, len(answer.claims) - 1))
    facts, cited = answer.claims[claim]
    right = [number for number, held in enumerate(answer.passages, 1) if facts <= held and number not in cited]
    more = answer.citing(claim, [*cited, *right])
    assert more.value("citation_recall") >= answer.value("citation_recall")
    assert more.value("misattributed_claims") <= answer.value("misattributed_claims")


@given(answers())
def test_recall_and_precision_are_those_of_alce(answer: Answer) -> None:
    """The definition of ALCE, with a verdict on every set of cited passages, gives the same scores."""
    supported, needed, citations = 0, 0, 0
    for number, (_, cited) in enumerate(answer.claims):
        claim, known = f"response:{number}", [index - 1 for index in cited if index <= len(answer.passages)]

        def says(indices: Sequence[int], claim: str = claim) -> bool:
            return bool(indices) and answer.supports(claim, f"contexts:{','.join(map(str, indices))}") == 1

        supported += says(known)
        citations += len(cited)
        for index in known:
            rest = [other for other in known if other != index]
            needed += says(known) and (says([index]) or not says(rest))
    assert answer.value("citation_recall") == supported / len(answer.claims)
    assert answer.value("citation_precision") == (needed / citations if citations else 0.0)


@given(answers())
def test_scores_are_shares_and_ask_no_more_than_they_read(answer: Answer) -> None:
    for request in requests_of(CITING):
        score, asked = answer.ask_and_score(request)
        assert score.status is not Status.FAILED
        assert score.value is None or 0 <= score.value <= 1
        most = sum(2 * len(answer.passages) + 1 for _ in answer.claims)
        assert asked <= most
    alone = sum(len({number for number in cited if number <= len(answer.passages)}) for _, cited in answer.claims)
    together = sum(len(cited) > 1 for _, cited in answer.claims)
    recall = REQUESTS["citation_recall"][0]
    assert alone <= answer.ask_and_score(recall)[1] <= alone + together


@given(answers())
def test_shares_of_claims_add_up(answer: Answer) -> None:
    uncited = answer.value("uncited_claims", count="any")
    assert answer.value("uncited_claims", count="supported") <= uncited
    right, misattributed = answer.value("citation_recall"), answer.value("misattributed_claims")
    assert right + misattributed + uncited <= 1 + 1e-9
    precision, f1 = answer.value("citation_precision"), answer.value("citation_f1")
    assert min(precision, right) - 1e-9 <= f1 <= max(precision, right) + 1e-9
    assert (f1 == 0) == (precision == 0 or right == 0)


@given(answers())
def test_partial_support_by_the_cited_passages_counts_one_half(answer: Answer) -> None:
    """With levels, recall is the weighted recall of TREC's support evaluation, over all cited passages together."""
    credit = 0.0
    for number, (_, cited) in enumerate(answer.claims):
        claim, known = f"response:{number}", [index - 1 for index in cited if index <= len(answer.passages)]
        premise = f"contexts:{','.join(map(str, known))}"
        levels = [answer.supports(claim, premise, in_part=in_part) for in_part in (False, True)] if known else [0.0]
        credit += sum(levels) / len(levels)
    found = answer.value("citation_recall", partial=True)
    assert found == pytest.approx(credit / len(answer.claims), abs=1e-9)
    assert found >= answer.value("citation_recall")


@given(answers())
def test_a_failed_verdict_is_no_verdict_against_the_claim(answer: Answer) -> None:
    for request in requests_of(CITING):
        evidence = answer.evidence()
        wanted = request.verdict_requests(evidence)
        failed = {(each.kind, *each.key): None for each in wanted}
        score = request.score(replace(evidence, verdicts=failed))
        assert score.status is (Status.FAILED if wanted else answer.ask_and_score(request)[0].status)
