"""Guides to the retrieval metrics over relevance judgments."""

from metric_core.evidence import Evidence
from metric_core.guides.guide import Example, Guide
from metric_core.records import Sample

_ROW = Sample(
    retrieved_context_ids=("d3", "d1", "d1", "d9"),
    relevance_judgments={"d1": 2.0, "d2": 1.0, "d3": 0.0, "d4": 1.0},
)
_EVIDENCE = Evidence(_ROW)
_RANKS = (
    "Ranks are the order of `retrieved_context_ids`. It is kept, also where `retrieved_context_scores` are equal or in "
    "another order. trec_eval sorts by score, and equal scores by id from the last to the first."
)
_DUPLICATES = "An id that was retrieved several times counts once, at its first rank; later passages move up."
_UNJUDGED = "A passage without a judgment counts as irrelevant. `judged_passages` says how many have one."
_NOTHING = (
    "Nothing judged relevant: undefined. trec_eval scores such a query 0, so its means over all queries are lower by "
    "the share of such queries."
)
_MADE = (
    "`judgments=judge` has the judge grade each retrieved passage from 0 to 3, as UMBRELA does (Upadhyay et al. 2024; "
    "the wording is our own); `both` asks only about passages without a given grade. It needs a language model, "
    "`user_input` and `retrieved_contexts`. Grades are cached by question and text, so an index that was rebuilt costs "
    "only its new passages. A grade that the judge did not give makes the cell fail."
)
_POOL = (
    "With `judgments=judge` only retrieved passages are graded. What was not retrieved is unknown, so the score says "
    "how the retrieved passages are ordered, not how many were missed."
)
_IRRELEVANT = "Where the judge has graded all passages and none is relevant, the score is 0."
_GENERAL = (_RANKS, _DUPLICATES, _UNJUDGED)

NDCG = Guide(
    formula=(
        "DCG = sum over the ranks r of gain(grade at r) / log2(r + 1)\n"
        "score = DCG of the ranking / DCG of all judged passages in the best order, both up to rank k\n"
        "gain = grade (linear) or 2^grade - 1 (exponential)"
    ),
    notes=(*_GENERAL, "Grades below 0 gain nothing.", _MADE, _POOL),
    example=Example(
        evidence=_EVIDENCE,
        value=0.40303028,
        comment="The grade 2 is at rank 2: 2 / log2(3) = 1.262. Best: 2 + 1 / log2(3) + 1 / log2(4) = 3.131.",
    ),
    differences=("The default gain is that of trec_eval and of nDCG in ir-measures.", _NOTHING),
)
AVERAGE_PRECISION = Guide(
    formula="score = (sum of precision@r over the ranks r of relevant passages up to k) / relevant judged passages",
    notes=(*_GENERAL, _MADE, _POOL),
    example=Example(
        evidence=_EVIDENCE,
        value=1 / 6,
        comment="One of three relevant passages is retrieved, at rank 2: (1/2) / 3.",
    ),
    differences=(_NOTHING,),
)
RETRIEVAL_RECALL = Guide(
    formula="score = relevant passages among the ranks up to k / relevant judged passages",
    notes=(*_GENERAL, _MADE, _POOL),
    example=Example(evidence=_EVIDENCE, value=1 / 3, comment="`d1` of `d1`, `d2` and `d4`."),
    differences=(_NOTHING, "`id_context_recall` has reference ids in place of grades."),
)
RETRIEVAL_PRECISION = Guide(
    formula="score = relevant passages among the ranks up to k / k, or / retrieved passages without a k",
    notes=(*_GENERAL, "Fewer than k passages: the ranks that are missing count as irrelevant.", _MADE, _IRRELEVANT),
    example=Example(
        evidence=_EVIDENCE,
        value=0.2,
        parameters={"k": 5},
        comment="`d1` is relevant: 1 of 5 ranks.",
    ),
    differences=(_NOTHING,),
)
RECIPROCAL_RANK = Guide(
    formula="score = 1 / rank of the first relevant passage; 0 if there is none up to k",
    notes=(*_GENERAL, _MADE, _IRRELEVANT),
    example=Example(evidence=_EVIDENCE, value=0.5, comment="`d1` is at rank 2."),
    differences=(_NOTHING,),
)
HIT_RATE = Guide(
    formula="score = 1 if a passage up to rank k is relevant, else 0",
    notes=(*_GENERAL, _MADE, _IRRELEVANT),
    example=Example(evidence=_EVIDENCE, value=0.0, parameters={"k": 1}, comment="`d3` at rank 1 has the grade 0."),
    differences=(_NOTHING,),
)
JUDGED_PASSAGES = Guide(
    formula="score = judged passages among the ranks up to k / passages among the ranks up to k",
    notes=(
        _DUPLICATES,
        (
            "A low value says that the other metrics measure the judgments more than the retriever: passages that "
            "earlier systems did not find were never judged. The others can have the judge grade them."
        ),
    ),
    example=Example(evidence=_EVIDENCE, value=2 / 3, comment="`d3` and `d1` are judged, `d9` is not."),
)

GUIDES = {
    "ndcg": NDCG,
    "retrieval_recall": RETRIEVAL_RECALL,
    "retrieval_precision": RETRIEVAL_PRECISION,
    "reciprocal_rank": RECIPROCAL_RANK,
    "average_precision": AVERAGE_PRECISION,
    "hit_rate": HIT_RATE,
    "judged_passages": JUDGED_PASSAGES,
}
