"""The name that somebody may have meant: known names that contain what was written, or are written much like it."""

from collections.abc import Iterable

from rapidfuzz import fuzz

LEAST_LIKENESS = 72
"""Of 100: what a name must reach to be suggested."""


def suggest_names(wanted: str, known: Iterable[str], most: int = 4) -> list[str]:
    """Known names near to what was written, nearest first.

    Args:
        wanted: what was written.
        known: the names that there are.
        most: how many to suggest at most.

    >>> suggest_names("noise", ["faithfulness", "noise_sensitivity"])
    ['noise_sensitivity']
    >>> suggest_names("precison", ["context_recall", "context_precision"])
    ['context_precision']
    >>> suggest_names("zzz", ["context_recall"])
    []
    """
    likeness = {name: _similarity(wanted.casefold(), name.casefold()) for name in known}
    near = [name for name, value in likeness.items() if value >= LEAST_LIKENESS]
    return sorted(near, key=lambda name: (-likeness[name], name))[:most]


def _similarity(wanted: str, name: str) -> float:
    if not wanted:
        return 0.0
    if len(wanted) > 2 and wanted in name:
        return 100.0 + (1.0 if name.startswith(wanted) else 0.0) - len(name) / 1000
    words = [fuzz.ratio(wanted, word) for word in name.split("_") if len(word) > 3 and "_" not in wanted]
    return max([fuzz.ratio(wanted, name), *words])
