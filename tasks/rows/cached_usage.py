"""Count what results cost that are found rather than computed."""

from tasks.runtime.usage import KindUsage, StageUsage


def cached_usage(usage: StageUsage) -> StageUsage:
    """Return the cost of results that are found: their questions, all cached, and what the stage noticed about texts.

    >>> cached_usage(StageUsage(questions=3, requests=3, prompt_tokens=900))
    StageUsage(questions=3, stored=3, requests=0, ...)
    """
    return StageUsage(
        questions=usage.questions,
        stored=usage.questions,
        long_texts=usage.long_texts,
        kinds={kind: KindUsage(questions=cost.questions, stored=cost.questions) for kind, cost in usage.kinds.items()},
    )


def share_of(usage: StageUsage, share: float) -> StageUsage:
    """Return the cost of a share of results that are found, rounded: the questions of single rows are not counted.

    Args:
        usage: Their cost, as `cached_usage` returns it.
        share: Share of their rows, from 0 to 1.

    >>> share_of(cached_usage(StageUsage(questions=3)), 0.5).questions
    2
    """
    return StageUsage(
        questions=round(usage.questions * share),
        stored=round(usage.stored * share),
        long_texts=round(usage.long_texts * share),
        kinds={
            kind: KindUsage(questions=round(cost.questions * share), stored=round(cost.stored * share))
            for kind, cost in usage.kinds.items()
        },
    )
