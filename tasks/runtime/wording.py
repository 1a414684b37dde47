"""Format names and values for messages: short, quoted, safe to print, with the nearest valid name."""

import difflib
import re
import reprlib
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from metric_core.columns import COLUMN_ALIASES, LOOKALIKES

_SEPARATOR = re.compile(r"[\s.-]+|(?<=[a-z0-9])(?=[A-Z])")
_LONGEST_WORD = 40
"""Length of a word that is not cut."""
NO_REVISION = "not given"
"""The revision of a model whose server reports none."""

_EXCERPT = reprlib.Repr()
_EXCERPT.maxstring = _EXCERPT.maxother = 60
_EXCERPT.maxlist = _EXCERPT.maxdict = 2
_EXCERPT.maxlevel = 2


def quote_names(names: Iterable[str], most: int = 30) -> str:
    """Return names in quotes.

    >>> quote_names(["a", "b", "c"], most=2)
    "'a', 'b' and 1 more"
    """
    every = list(names)
    shown = ", ".join(map(_EXCERPT.repr, every[:most]))
    rest = f" and {len(every) - most} more" if len(every) > most else ""
    return shown + rest if every else "none"


def format_percent(share: float, decimals: int = 0) -> str:
    """Return a share as a percentage.

    >>> format_percent(0.95), format_percent(0.0475, 1)
    ('95 %', '4.8 %')
    """
    return f"{100 * share:.{decimals}f} %"


def shorten(text: str, limit: int) -> str:
    """Return a text, cut if it is longer than a limit: between words, unless the last word is very long.

    >>> shorten("faithfulness fell by 0.05", 20), shorten("faithfulness", 6)
    ('faithfulness fell…', 'faith…')
    """
    if len(text) <= limit:
        return text
    cut = text[: limit - 1]
    words = cut if text[limit - 1].isspace() else cut.rpartition(" ")[0]
    is_between = bool(words) and len(cut) - len(words) <= _LONGEST_WORD
    return f"{words.rstrip() if is_between else cut}…"


def suggest_nearest(name: str, candidates: Iterable[str]) -> str | None:
    """Return the candidate that is most similar to a name, ignoring case; None if none is similar.

    >>> suggest_nearest("refrence", ["id", "Reference"])
    'Reference'
    """
    by_folded = {candidate.casefold(): candidate for candidate in candidates}
    matches = difflib.get_close_matches(name.casefold(), by_folded, n=1)
    return by_folded[matches[0]] if matches else None


def snake_case(name: str) -> str:
    """Return a name in the spelling of the columns of a sample.

    >>> snake_case("retrievalContext"), snake_case("Ground Truth"), snake_case("user-input")
    ('retrieval_context', 'ground_truth', 'user_input')
    """
    return _SEPARATOR.sub("_", name.strip()).casefold()


def find_lookalike(column: str, candidates: Iterable[str]) -> str | None:
    """Return the source column whose name is in use for a sample column, or is its name in another spelling.

    >>> find_lookalike("retrieved_contexts", ["context", "Retrieval Context"]), find_lookalike("reference", ["uid"])
    ('Retrieval Context', None)
    """
    by_name: dict[str, str] = {}
    for candidate in candidates:
        by_name.setdefault(snake_case(candidate), candidate)
    aliases = (name for names in (COLUMN_ALIASES, LOOKALIKES) for name, target in names.items() if target == column)
    return next((by_name[name] for name in (column, *aliases) if name in by_name), None)


def suggest_nearest_column(column: str, candidates: Iterable[str]) -> str | None:
    """Return the source column that probably is a sample column by its name; None if none is.

    Names in use for such a column come first, then those that are similar to its name or one of its aliases.

    >>> suggest_nearest_column("user_input", ["uid", "questions"])
    'questions'
    >>> suggest_nearest_column("reference", ["References", "expectedOutput"])
    'expectedOutput'
    """
    available = list(candidates)
    if (known := find_lookalike(column, available)) is not None:
        return known
    names = (column, *(alias for alias, target in COLUMN_ALIASES.items() if target == column))
    return next((nearest for name in names if (nearest := suggest_nearest(name, available)) is not None), None)


def describe_value(value: Any) -> str:
    """Describe a value by its type and an excerpt, in the terms of file formats.

    >>> describe_value(5), describe_value(True), describe_value(["a", None]), describe_value(None)
    ('the number 5', 'true', "the list ['a', None]", 'null')
    """
    if value is None or isinstance(value, bool):
        return "null" if value is None else str(value).lower()
    kinds: tuple[tuple[type | tuple[type, ...], str], ...] = (
        (str, "the text"),
        ((int, float), "the number"),
        ((list, tuple), "the list"),
        (dict, "the object"),
    )
    kind = next((word for types, word in kinds if isinstance(value, types)), f"the {type(value).__name__}")
    return f"{kind} {_EXCERPT.repr(value)}"


def prefix_place(place: Iterable[object], message: str) -> str:
    """Return a message about a place in nested data with the place before it; one about the whole without.

    >>> prefix_place(("deploy", "cron"), "wanted a text"), prefix_place((), "two of them are alike")
    ('deploy.cron: wanted a text', 'two of them are alike')
    """
    return ": ".join(filter(None, (".".join(map(str, place)), message)))


def shorten_path(path: Path | str) -> str:
    """Return a path relative to the current folder, if it is below it.

    >>> shorten_path(Path.cwd() / "runs" / "a"), shorten_path("/elsewhere")
    ('runs/a', '/elsewhere')
    """
    here = Path.cwd()
    return str(Path(path).relative_to(here)) if Path(path).is_relative_to(here) else str(path)


def describe_seconds(seconds: float) -> str:
    """Return a duration in words.

    >>> describe_seconds(42.4), describe_seconds(600), describe_seconds(9000)
    ('42 s', '10 min', '2.5 h')
    """
    if seconds < 120:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 7200 else f"{seconds / 3600:.1f} h"
