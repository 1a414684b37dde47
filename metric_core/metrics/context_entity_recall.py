"""Context entity recall: the share of entities of the reference that the retrieved contexts name."""

import re
import unicodedata
from collections.abc import Iterable

from metric_core import columns, reasons
from metric_core.declarations.metric import Metric, MetricRequest, Parameter, constant
from metric_core.evidence import Evidence
from metric_core.records import Score, Side
from metric_core.stages import Product

NORMALIZED, EXACT = "normalized", "exact"

_QUOTES = "'\"`\u2018\u2019\u201c\u201d\u00ab\u00bb"
_HYPHENS = r"\-\u2010-\u2015"
_ARTICLE = re.compile(rf"^[{_QUOTES}(\[]*(?:a|an|the)\s+")  # not "A. Smith", nor "A-Team"
_POSSESSIVE = re.compile(r"['\u2019]s\b|(?<=s)['\u2019](?!\w)")
_JOINER = re.compile(rf"(?<=\w)[{_HYPHENS}/_]|[{_HYPHENS}/_](?!\d)")  # except a minus sign
_MARK = re.compile(rf"[{_QUOTES},;:!?()\[\]{{}}]|\.(?!\d)|(?<=[^\W\d])\.")  # except a decimal point


def context_entity_recall(
    reference_entities: Iterable[str], context_entities: Iterable[str], match: str = NORMALIZED
) -> Score:
    """Return the share of distinct entities of the reference that are among those of the retrieved contexts.

    Source: Sarkar, "Evaluating LLM and RAG Systems: Metrics", Context entities Recall.

    Args:
        reference_entities: Entities of the reference, as written.
        context_entities: Entities of the retrieved contexts, as written.
        match: "normalized" (see `normalize_entity`) or "exact".

    Returns:
        A score in [0, 1]; undefined (no entities in the reference).

    >>> reference = ["Taj Mahal", "Yamuna", "Agra", "1631", "Shah Jahan", "Mumtaz Mahal"]
    >>> context_entity_recall(reference, ["the Taj Mahal", "Agra", "Shah Jahan", "Mumtaz Mahal", "India"]).value
    0.6666666666666666
    >>> context_entity_recall(reference, ["Taj Mahal", "UNESCO", "India"]).value
    0.16666666666666666
    """
    reference, contexts = _distinct(reference_entities, match), _distinct(context_entities, match)
    if not reference:
        return Score.undefined(reasons.NO_REFERENCE_ENTITIES)
    return Score.scored(len(reference & contexts) / len(reference))


def normalize_entity(entity: str) -> str:
    """Return the form of an entity that different spellings of the same name share.

    Removed are case, a leading article, possessives, quotes, brackets, commas, full stops (except in numbers),
    invisible characters and repeated white space; hyphens (except minus signs) and slashes become white space.

    >>> normalize_entity("The  U.S. Navy's"), normalize_entity("Stratford-upon-Avon"), normalize_entity("3.5 million")
    ('us navy', 'stratford upon avon', '3.5 million')
    """
    folded = unicodedata.normalize("NFKC", entity).casefold()
    text = "".join(character for character in folded if unicodedata.category(character) != "Cf").strip()
    text = _JOINER.sub(" ", _POSSESSIVE.sub("", _ARTICLE.sub("", text)))
    return " ".join(_MARK.sub("", text).split())


def _distinct(entities: Iterable[str], match: str) -> set[str]:
    if match == EXACT:
        return set(entities)
    return {name for entity in entities if (name := normalize_entity(entity))}


def _compute(request: MetricRequest, evidence: Evidence) -> Score:
    return context_entity_recall(
        evidence.entity_set(Side.REFERENCE, Product.REFERENCE_ENTITIES),
        evidence.entity_set(Side.CONTEXT, Product.REFERENCE_ENTITIES_IN_CONTEXTS),
        request.parameters["match"],
    )


CONTEXT_ENTITY_RECALL = Metric(
    name="context_entity_recall",
    summary="Share of the named entities of the reference that the retrieved contexts name; needs no judge.",
    question="Do the passages name everything that the reference names?",
    source='Sarkar, "Evaluating LLM and RAG Systems: Metrics", Context entities Recall',
    family="context_entity_recall",
    columns=constant(columns.RETRIEVED_CONTEXTS, columns.REFERENCE),
    products=constant(Product.REFERENCE_ENTITIES, Product.REFERENCE_ENTITIES_IN_CONTEXTS),
    compute=_compute,
    undefined={reasons.NO_REFERENCE_ENTITIES: "the reference has no named entities"},
    aliases=("context_entities_recall",),
    parameters={
        "match": Parameter(
            summary="normalized ignores case, articles, possessives and punctuation",
            default=NORMALIZED,
            choices=(NORMALIZED, EXACT),
        )
    },
)
