"""Suggest names for misspelled ones."""

from collections.abc import Iterable

MIN_SIMILARITY = 72
"""Minimum similarity of a suggested name, from 0 to 100."""


def suggest_names(wanted: str, known: Iterable[str], most: int = 4) -> list[str]:
    """Return known names that contain the given name or are spelled like it, closest first.

    Args:
        most: Maximum number of suggestions.

    >>> suggest_names("noise", ["faithfulness", "noise_sensitivity"])
    ['noise_sensitivity']
    >>> suggest_names("precison", ["context_recall", "context_precision"])
    ['context_precision']
    >>> suggest_names("zzz", ["context_recall"])
    []
    """
    similarity = {name: _similarity(wanted.casefold(), name.casefold()) for name in known}
    near = [name for name, value in similarity.items() if value >= MIN_SIMILARITY]
    return sorted(near, key=lambda name: (-similarity[name], name))[:most]


def _similarity(wanted: str, name: str) -> float:
    from rapidfuzz import fuzz  # noqa: PLC0415 only for a mistake

    if not wanted:
        return 0.0
    if len(wanted) > 2 and wanted in name:
        return 100.0 + (1.0 if name.startswith(wanted) else 0.0) - len(name) / 1000
    words = [fuzz.ratio(wanted, word) for word in name.split("_") if len(word) > 3 and "_" not in wanted]
    return max([fuzz.ratio(wanted, name), *words])
