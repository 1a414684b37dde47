"""The guides to all builtin metrics."""

from collections.abc import Mapping

from metric_core.guides import citation_guides, claim_guides, ranking_guides, rating_guides, refusal_guides, text_guides
from metric_core.guides.guide import Guide

GUIDES: Mapping[str, Guide] = {
    **claim_guides.GUIDES,
    **citation_guides.GUIDES,
    **text_guides.GUIDES,
    **ranking_guides.GUIDES,
    **rating_guides.GUIDES,
    **refusal_guides.GUIDES,
}
"""Name of a metric -> its guide."""
