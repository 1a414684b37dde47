"""Name the premises that are several retrieved contexts together."""

from collections.abc import Iterable

_ONE, _SEVERAL = "context", "contexts"


def contexts_premise(indices: Iterable[int]) -> str:
    """Return the name of the premise that is several retrieved contexts together, by their indices from 0.

    >>> contexts_premise([2, 0]), contexts_premise([1])
    ('contexts:0,2', 'context:1')
    """
    chosen = sorted(set(indices))
    return f"{_ONE}:{chosen[0]}" if len(chosen) == 1 else f"{_SEVERAL}:{','.join(map(str, chosen))}"


def contexts_of(premise: str) -> tuple[int, ...]:
    """Return the indices of the contexts that a premise consists of; empty for any other premise.

    >>> contexts_of("contexts:0,2"), contexts_of("context:1"), contexts_of("contexts"), contexts_of("context:x")
    ((0, 2), (1,), (), ())
    """
    if premise.partition(":")[0] not in (_SEVERAL, _ONE):
        return ()
    indices = premise.partition(":")[2].split(",")
    return tuple(map(int, indices)) if all(index.isdecimal() for index in indices) else ()
