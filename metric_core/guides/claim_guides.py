"""Guides to the metrics that check claims."""

from metric_core.evidence import ALL_CONTEXTS, BY_REFERENCE, BY_RESPONSE, BY_USER_INPUT, context_premise
from metric_core.guides.guide import Example, Guide, judge
from metric_core.records import Sample, Side, VerdictKind
from metric_core.stages import Product

_FIRST, _SECOND = context_premise(0), context_premise(1)
_SHOP = Sample(
    user_input="Where is the shop, and when does it open?",
    response="The shop is in Delft. It opens at eight.",
    retrieved_contexts=("The shop is in Delft.", "The shop opens at nine."),
    reference="The shop is in Delft and opens at nine.",
)
_IN_DELFT, _AT_EIGHT, _AT_NINE = "The shop is in Delft.", "The shop opens at eight.", "The shop opens at nine."
_CROSSWISE = {
    Side.RESPONSE: {_IN_DELFT: {BY_REFERENCE: 1.0}, _AT_EIGHT: {BY_REFERENCE: 0.0}},
    Side.REFERENCE: {_IN_DELFT: {BY_RESPONSE: 1.0}, _AT_NINE: {BY_RESPONSE: 0.0}},
}

FAITHFULNESS = Guide(
    formula="supported claims of the response / claims of the response",
    notes=(
        "The premise is all retrieved contexts together.",
        "If nothing was retrieved, nothing supports the claims: the score is 0, and no judge is asked.",
    ),
    example=Example(
        evidence=judge(_SHOP, {Side.RESPONSE: {_IN_DELFT: {ALL_CONTEXTS: 1.0}, _AT_EIGHT: {ALL_CONTEXTS: 0.0}}}),
        value=0.5,
        comment="One of two claims is supported.",
    ),
    differences=(
        "Needs no `user_input` column. Ragas requires one, but the formula does not use it.",
        (
            "Every claim has exactly one verdict. Ragas divides by the number of verdicts that came back, so a "
            "reply with "
            "two verdicts on four claims can score 1."
        ),
        (
            "A response without claims is undefined with that reason; Ragas returns NaN, as it does when the judge "
            "fails."
        ),
    ),
)

CONTEXT_RECALL = Guide(
    formula="claims of the reference that the contexts support / claims of the reference",
    notes=(
        "With `unit=sentence`, the sentences of the reference are counted as they stand.",
        "If nothing was retrieved, the score is 0.",
    ),
    example=Example(
        evidence=judge(
            Sample(retrieved_contexts=("The shop is in Delft.",), reference=_SHOP.reference),
            {Side.REFERENCE: {_IN_DELFT: {ALL_CONTEXTS: 1.0}, _AT_NINE: {ALL_CONTEXTS: 0.0}}},
        ),
        value=0.5,
        comment="The contexts contain one of the two facts of the reference.",
    ),
    differences=(
        (
            "The unit is settled: claims, or sentences. The documents disagree (one counts claims, two count "
            "sentences), and "
            "Ragas leaves it to the judge, so its denominator changes from run to run."
        ),
        "The claims of the reference are shared with the other metrics, and each is judged on its own.",
        "Needs no `user_input` column.",
    ),
)

FACTUAL_CORRECTNESS = Guide(
    formula=(
        "TP = response claims that the reference supports, FP = the others, FN = reference claims that the response "
        "does not support\n"
        "mode=precision: TP / (TP + FP)\n"
        "mode=recall: supported reference claims / reference claims   (recall_basis=reference)\n"
        "             TP / (TP + FN)                                  (recall_basis=documented)\n"
        "mode=f1: F-beta of TP, FP and FN                             (recall_basis=documented)\n"
        "         F-beta of precision and of recall                   (recall_basis=reference)"
    ),
    notes=("A response without claims scores 0 in f1; without claims in the reference, FN is 0.",),
    example=Example(
        evidence=judge(_SHOP, _CROSSWISE),
        value=0.5,
        comment="TP = 1, FP = 1, FN = 1: F1 = 1 / (1 + (1 + 1) / 2) = 0.5.",
    ),
    differences=(
        (
            "Recall is the share of reference claims that are covered, unless `recall_basis=documented` is set. "
            "Ragas adds "
            "claims of the response to claims of the reference in one fraction: a response whose only claim is "
            "wrong can "
            "have recall 0 although it covers every reference claim. f1 follows the documented definition by default."
        ),
        "A side without claims that the mode counts is undefined. Ragas returns 0.",
        "Not rounded; Ragas rounds to two decimals.",
    ),
)

NOISE_SENSITIVITY = Guide(
    formula=(
        "a context is relevant if it supports a claim of the reference\n"
        "mode=relevant: claims of the response that a relevant context supports and the reference does not / claims\n"
        "mode=irrelevant: the same for claims that only irrelevant contexts support"
    ),
    notes=("Lower is better: means, gates, comparisons and colors take that into account.",),
    example=Example(
        evidence=judge(
            Sample(
                response="The shop is in Delft. It opens at eight.",
                retrieved_contexts=("The shop is in Delft. It opens at eight in summer.", "The bakery opens at six."),
                reference="The shop is in Delft.",
            ),
            {
                Side.RESPONSE: {
                    _IN_DELFT: {BY_REFERENCE: 1.0, _FIRST: 1.0, _SECOND: 0.0},
                    _AT_EIGHT: {BY_REFERENCE: 0.0, _FIRST: 1.0, _SECOND: 0.0},
                },
                Side.REFERENCE: {"The shop is in Delft": {_FIRST: 1.0, _SECOND: 0.0}},
            },
        ),
        value=0.5,
        comment="The second claim is not in the reference and comes from the first context, which is relevant.",
    ),
    differences=(
        "`relevant` is the default mode, as in Ragas' code. One of the documents describes only `irrelevant`.",
        (
            "Without contexts or without claims the score is undefined with that reason. Ragas raises an error for "
            "the row."
        ),
        "A context verdict that failed counts only if the score depends on it.",
    ),
)

ANSWER_CORRECTNESS = Guide(
    formula=(
        "TP, FP, FN as in factual_correctness\n"
        "F-beta = (1 + beta^2) TP / ((1 + beta^2) TP + beta^2 FN + FP)\n"
        "score = (w1 * F-beta + w2 * cosine) / (w1 + w2), with weights = [w1, w2]"
    ),
    notes=(
        ("If neither side has claims, F-beta is 1. A part with weight 0 is not computed, and its model not asked."),
    ),
    example=Example(
        evidence=judge(_SHOP, _CROSSWISE, answer_similarities={Product.ANSWER_SIMILARITY: 0.8}),
        value=0.575,
        comment="F1 = 0.5 and the cosine is 0.8: 0.75 * 0.5 + 0.25 * 0.8 = 0.575.",
    ),
    differences=(
        (
            "Each claim is judged against the other text. Ragas asks one question that sorts all claims of both "
            "sides at "
            "once, and counts what comes back without comparing it with the claims."
        ),
        "Claims on one side only: F-beta is 0. One of the two implementations in Ragas returns 1.",
        "The cosine is not clamped, so the score can be slightly negative; one document says 0 to 1.",
    ),
)

CONTEXT_RELEVANCY = Guide(
    formula="sentences of the contexts that help to answer the user question / sentences of the contexts",
    notes=("If nothing was retrieved, the score is 0.",),
    example=Example(
        evidence=judge(
            Sample(
                user_input="When does the shop open?",
                retrieved_contexts=(
                    "The shop opens at nine. Delft has canals.",
                    "It rained on Sunday. Tulips are red.",
                ),
            ),
            {
                Side.CONTEXT_SENTENCE: {
                    "The shop opens at nine.": {BY_USER_INPUT: 1.0},
                    "Delft has canals.": {BY_USER_INPUT: 0.0},
                    "It rained on Sunday.": {BY_USER_INPUT: 0.0},
                    "Tulips are red.": {BY_USER_INPUT: 0.0},
                }
            },
            VerdictKind.RELEVANCE,
        ),
        value=0.25,
        comment="One of four sentences helps.",
    ),
    differences=(
        (
            "The judge names the numbers of the sentences that help. The first versions of Ragas had the judge "
            "copy the "
            "sentences and counted what it wrote, invented sentences included; later versions dropped the metric."
        ),
        "Not to be confused with `nv_context_relevance`, which rates all contexts as a whole.",
    ),
)

GUIDES = {
    "faithfulness": FAITHFULNESS,
    "context_recall": CONTEXT_RECALL,
    "context_relevancy": CONTEXT_RELEVANCY,
    "answer_correctness": ANSWER_CORRECTNESS,
    "factual_correctness": FACTUAL_CORRECTNESS,
    "noise_sensitivity": NOISE_SENSITIVITY,
}
