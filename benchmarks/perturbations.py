"""Make claims false by one change: examples that teach the built-in judge the effect of a number, a name or a "not"."""

import re
import zlib
from collections.abc import Iterator, Sequence

from metric_core.words.lexicon import MONTHS, OPPOSITES

_NUMBER = re.compile(r"\b\d+(?:,\d{3})*(?:\.\d+)?\b")
_NAME = re.compile(r"(?<=[a-z,] )[A-Z][a-z]{2,}\b")
_AUXILIARY = re.compile(
    r"\b(?:is|are|was|were|has|have|had|can|could|will|would|may|must|should|does|did|do)\b(?! not)"
)
_NEGATION = re.compile(r"\s*\bnot\b|n't\b")
_WORD = re.compile(r"\b\w+\b")
_MONTHS = [month.capitalize() for month in MONTHS.values()]
_TOO_COMMON = frozenset({"first", "second", "last", "above", "over"})


def perturb(claim: str, premise: str, names: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Yield false versions of a true claim, each with the kind of change, deterministic per claim.

    Args:
        claim: Claim that the premise supports.
        premise: Text of the premise; nothing it mentions is inserted into the claim.
        names: Names to substitute for those of the claim.
    """
    changes = {
        "number": _other_number(claim),
        "name": _other_name(claim, premise, names),
        "negation": _negate(claim),
        "opposite": _opposite(claim),
    }
    for kind, change in changes.items():
        if change is not None and (kind == "negation" or not re.search(rf"\b{re.escape(change[1])}\b", premise)):
            yield kind, change[0]


def names_in(claims: Sequence[str]) -> list[str]:
    """Return the names that the claims mention, sorted."""
    return sorted({match.group() for claim in claims for match in _NAME.finditer(claim)}.difference(_MONTHS))


def _draw(options: Sequence[re.Match[str]], claim: str) -> re.Match[str] | None:
    return options[_hash(claim) % len(options)] if options else None


def _hash(text: str) -> int:
    return zlib.crc32(text.encode())


def _replace(claim: str, match: re.Match[str], new: str) -> tuple[str, str]:
    return claim[: match.start()] + new + claim[match.end() :], new


def _other_number(claim: str) -> tuple[str, str] | None:
    match = _draw(list(_NUMBER.finditer(claim)), claim)
    if match is None:
        return None
    value = float(match.group().replace(",", ""))
    step = 1.5 if value % 1 else (1, 2, 3, 5, 7, 10)[_hash(claim + "step") % 6]
    smaller = value > step and _hash(claim + "sign") % 2
    return _replace(claim, match, f"{value - step if smaller else value + step:.12g}")


def _other_name(claim: str, premise: str, names: Sequence[str]) -> tuple[str, str] | None:
    match = _draw([match for match in _NAME.finditer(claim) if match.group() not in _MONTHS], claim)
    tries = (names[_hash(f"{claim}{turn}") % len(names)] for turn in range(10))
    new = next((name for name in tries if name not in premise), None)
    return _replace(claim, match, new) if match is not None and new is not None else None


def _negate(claim: str) -> tuple[str, str] | None:
    if _NEGATION.search(claim):
        return _NEGATION.sub("", claim, count=1), ""
    match = _AUXILIARY.search(claim)
    return _replace(claim, match, f"{match.group()} not") if match is not None else None


def _opposite(claim: str) -> tuple[str, str] | None:
    match = _draw([match for match in _WORD.finditer(claim) if match.group() in _CONTRARY], claim)
    return _replace(claim, match, _CONTRARY[match.group()]) if match is not None else None


def _contraries() -> dict[str, str]:
    """Map each word that has an opposite to one opposite."""
    contraries = {month: _MONTHS[(index + 3) % len(_MONTHS)] for index, month in enumerate(_MONTHS)}
    for group in OPPOSITES[1:]:
        for position, side in enumerate(group):
            for word in side:
                contraries.setdefault(word, group[(position + 1) % len(group)][0])
    return {word: contrary for word, contrary in contraries.items() if word not in _TOO_COMMON}


_CONTRARY = _contraries()
