"""Evaluate answers to rating questions: labels, numbers, and several votes on one question."""

from collections import Counter
from collections.abc import Sequence

from metric_core.declarations.metric import Parameter
from metric_core.declarations.parameter_checks import require_positive_integer

STRICTNESS = Parameter(
    summary="number of votes by the judge; an even number is raised to the next odd one",
    default=1,
    check=require_positive_integer,
)
"""Parameter of every metric that the judge votes on."""


def vote_count(strictness: int) -> int:
    """Return the number of votes to collect: an odd number, so that two answers cannot tie.

    >>> [vote_count(strictness) for strictness in (1, 2, 3)]
    [1, 3, 3]
    """
    return strictness + 1 - strictness % 2


def majority(votes: Sequence[int | str | None]) -> int | str | None:
    """Return the answer with most votes; None if there is none, or if failed votes (None) could have changed it.

    A tie without failed votes goes to the answer that came first.

    >>> majority(["yes", "no", "yes"]), majority(["yes", None, "yes"]), majority(["yes", "no", None])
    ('yes', 'yes', None)
    """
    ranked = Counter(vote for vote in votes if vote is not None).most_common(2)
    if not ranked:
        return None
    lead = ranked[0][1] - (ranked[1][1] if len(ranked) > 1 else 0)
    failed = sum(vote is None for vote in votes)
    return ranked[0][0] if failed == 0 or lead > failed else None


def exact_label(value: str | float | None, labels: Sequence[str]) -> str | None:
    r"""Return the label that a value equals, ignoring surrounding white space; None if it equals none.

    Labels are not searched for in prose.

    >>> exact_label(" 4\n", ("0", "2", "4")), exact_label(4.0, ("0", "2", "4")), exact_label("4 of 4", ("0", "2", "4"))
    ('4', '4', None)
    """
    text = value.strip() if isinstance(value, str) else "" if value is None else f"{value:g}"
    return text if text in labels else None
