"""Guides to the metrics that rank contexts, or compare texts, names and ids."""

from metric_core.evidence import Evidence, context_premise
from metric_core.guides.guide import Example, Guide
from metric_core.records import Question, Sample, Side, VerdictKind
from metric_core.stages import Product

_AVERAGE_PRECISION = (
    "u_k = 1 if the context at rank k is useful, else 0\n"
    "precision@k = (u_1 + ... + u_k) / k\n"
    "score = sum over ranks k of u_k * precision@k / (u_1 + ... + u_n)"
)
_RANKED = (
    "This is average precision: the mean of precision@k over the ranks of useful contexts only. Two of the documents "
    "say the mean over all ranks; their formula and worked examples, and the code of Ragas, are average "
    "precision, and "
    "so is this. For a useless context before a useful one it is 0.5, the other mean would be 0.25."
)
_UNRANKED = "No retrieved contexts: undefined, because nothing was ranked. Ragas returns 0 or raises an error."
_CONTEXTS = ("Delft has canals.", "The shop opens at nine.")
_MUSEUM = Sample(
    reference="The museum opened in Amsterdam in 1973. It shows works by Vincent van Gogh.",
    retrieved_contexts=("Vincent van Gogh lived in Arles in 1888.", "The museum in Amsterdam is open every day."),
)


def _useful(sample: Sample, kind: VerdictKind) -> Evidence:
    verdicts = {(kind, "", context_premise(0)): 0.0, (kind, "", context_premise(1)): 1.0}
    return Evidence(sample, verdicts=verdicts)


CONTEXT_PRECISION = Guide(
    formula=_AVERAGE_PRECISION,
    notes=(
        "The judge is asked about each context on its own: does it help to arrive at the reference?",
        "No useful context: 0.",
    ),
    example=Example(
        evidence=_useful(
            Sample(user_input="When does the shop open?", reference="At nine.", retrieved_contexts=_CONTEXTS),
            VerdictKind.USEFULNESS_FOR_REFERENCE,
        ),
        value=0.5,
        comment="The only useful context is at rank 2, where precision is 1/2.",
    ),
    differences=(
        _RANKED,
        _UNRANKED,
        "If all contexts are useful, the score is exactly 1; Ragas adds a small number to the denominator.",
        "With `verdict = probability`, the score is the expected average precision.",
    ),
)
CONTEXT_UTILIZATION = Guide(
    formula=_AVERAGE_PRECISION,
    notes=(
        (
            "The judge is asked about each context on its own: does it help to arrive at the response? No reference "
            "is read."
        ),
        "A wrong response that uses its contexts scores high: the metric is about the order of the contexts.",
    ),
    example=Example(
        evidence=_useful(
            Sample(user_input="When does the shop open?", response="At nine.", retrieved_contexts=_CONTEXTS),
            VerdictKind.USEFULNESS_FOR_RESPONSE,
        ),
        value=0.5,
        comment="The only useful context is at rank 2, where precision is 1/2.",
    ),
    differences=(_RANKED, _UNRANKED),
)
NON_LLM_CONTEXT_PRECISION = Guide(
    formula=(
        "u_k = 1 if the context at rank k has a similarity of at least `threshold` to a reference context, else 0\n"
        "score = sum over ranks k of u_k * precision@k / (u_1 + ... + u_n)"
    ),
    notes=("Similarity is that of `string_similarity`.",),
    example=Example(
        evidence=Evidence(
            Sample(retrieved_contexts=_CONTEXTS, reference_contexts=("The shop opens at nine o'clock.",))
        ),
        value=0.5,
        comment="Only the second context resembles a reference context.",
    ),
    differences=(
        _UNRANKED,
        "The threshold itself counts as similar here, and not in `non_llm_context_recall`, as in Ragas.",
    ),
)
NON_LLM_CONTEXT_RECALL = Guide(
    formula=(
        "reference contexts to which a retrieved context has a similarity greater than `threshold` / reference contexts"
    ),
    notes=("Similarity is that of `string_similarity`.", "If nothing was retrieved, the score is 0."),
    example=Example(
        evidence=Evidence(
            Sample(
                retrieved_contexts=("The shop opens at nine.",),
                reference_contexts=("The shop opens at nine o'clock.", "Bikes are sold since 1998."),
            )
        ),
        value=0.5,
        comment="One of two reference contexts was retrieved.",
    ),
    differences=("If nothing was retrieved, Ragas raises an error for the row.",),
)
_IDS = Sample(retrieved_context_ids=("a", "b"), reference_context_ids=("b", "c", "d"))
ID_CONTEXT_PRECISION = Guide(
    formula="distinct retrieved ids that are reference ids / distinct retrieved ids",
    notes=("Ids are compared as texts. The order of the ids has no effect.",),
    example=Example(evidence=Evidence(_IDS), value=0.5, comment="b is a reference id, a is not."),
)
ID_CONTEXT_RECALL = Guide(
    formula="distinct reference ids that were retrieved / distinct reference ids",
    notes=("Ids are compared as texts. If nothing was retrieved, the score is 0.",),
    example=Example(evidence=Evidence(_IDS), value=1 / 3, comment="One of three reference ids was retrieved."),
)
CONTEXT_ENTITY_RECALL = Guide(
    formula=(
        "distinct entities of the reference that are among those of the contexts / distinct entities of the reference"
    ),
    notes=(
        (
            "spaCy finds the entities (en_core_web_sm by default, `[language]` in the configuration): people, "
            "places, "
            "organizations, dates, numbers and more. It finds other entities than a person would, such as `every "
            "day` below."
        ),
    ),
    example=Example(
        evidence=Evidence(
            _MUSEUM,
            entities={
                Side.REFERENCE: ("Amsterdam", "1973", "Vincent van Gogh"),
                Side.CONTEXT: ("Vincent van Gogh", "Arles", "1888", "Amsterdam", "every day"),
            },
        ),
        value=2 / 3,
        comment="1973 is in no context. The entities are those that the packaged spaCy model finds.",
    ),
    differences=(
        (
            "No judge is asked. One document describes the metric as one without a language model, and so it is "
            "here; "
            "Ragas asks a judge twice. The entities differ: in the text on the Taj Mahal that explains the "
            "metric in the "
            "documents, the packaged model finds 8 entities instead of 6, and the scores are 5/8 and 1/8 instead "
            "of 4/6 "
            "and 1/6."
        ),
        (
            "Names are compared after case, articles, possessives and punctuation are removed. `match=exact` "
            "compares "
            "them as written, as Ragas does."
        ),
        "Entities are a set. One of the two implementations in Ragas counts repeated names of the reference again.",
        "No entities in the reference: undefined; Ragas returns 0.",
    ),
)
ANSWER_RELEVANCY = Guide(
    formula=(
        "score = mean of cosine(user question, regenerated question)\n"
        "score = 0 if all regenerated questions are noncommittal"
    ),
    notes=(
        (
            "The judge writes `strictness` questions that the response would answer, and says of each whether "
            "the response "
            "avoids an answer (noncommittal)."
        ),
        "Correctness has no influence: a wrong answer to the question scores high.",
    ),
    example=Example(
        evidence=Evidence(
            Sample(user_input="When does the shop open?", response="It opens at nine."),
            questions=(Question("When does the shop open?"), Question("What happens at nine?")),
            question_similarities=(1.0, 0.4),
        ),
        value=0.7,
        comment="(1.0 + 0.4) / 2.",
    ),
    differences=(
        (
            "Reads no contexts. Two of the documents list them, which was true of the first versions of Ragas, whose "
            "prompt contained them; the formula never used them."
        ),
        (
            "All questions are written in one reply, so they differ. One implementation in Ragas sends equal "
            "requests at a "
            "temperature near 0, and gets nearly equal questions."
        ),
        (
            "The score is 0 only if all questions are noncommittal, as in Ragas today; its first versions did that "
            "for one."
        ),
        "The cosine is not clamped, so the range is -1 to 1.",
    ),
)
_BIKES = Sample(response="Bikes are sold in Delft.", reference="Delft is where bikes are sold.")
ANSWER_SIMILARITY = Guide(
    formula=(
        "cosine(embedding of the response, embedding of the reference)\nwith `threshold`: 1 if it is reached, else 0"
    ),
    notes=("`encoder=cross` has a cross-encoder read both texts together; it needs the extra `transformers`.",),
    example=Example(
        evidence=Evidence(_BIKES, answer_similarities={Product.ANSWER_SIMILARITY: 0.9}),
        value=0.9,
        comment="The cosine itself.",
    ),
    differences=(
        (
            "The embeddings are computed separately by default, as the formula says. One document names a "
            "cross-encoder, "
            "which is an option here."
        ),
        "A threshold of 0 is a threshold; Ragas ignores it.",
        "The cosine is not clamped; two documents say 0 to 1.",
    ),
)
STRING_SIMILARITY = Guide(
    formula="1 - distance(response, reference) / greatest distance of strings of these lengths",
    notes=("Case, punctuation and order count. It is of use for answers of a few words, such as names and codes.",),
    example=Example(
        evidence=Evidence(Sample(response="sunday", reference="monday")),
        value=2 / 3,
        comment="Two of six characters differ.",
    ),
)

GUIDES = {
    "answer_relevancy": ANSWER_RELEVANCY,
    "context_precision": CONTEXT_PRECISION,
    "context_utilization": CONTEXT_UTILIZATION,
    "non_llm_context_precision": NON_LLM_CONTEXT_PRECISION,
    "id_context_precision": ID_CONTEXT_PRECISION,
    "non_llm_context_recall": NON_LLM_CONTEXT_RECALL,
    "id_context_recall": ID_CONTEXT_RECALL,
    "context_entity_recall": CONTEXT_ENTITY_RECALL,
    "answer_similarity": ANSWER_SIMILARITY,
    "string_similarity": STRING_SIMILARITY,
}
