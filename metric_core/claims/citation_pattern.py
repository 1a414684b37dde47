r"""Find citation markers by a pattern of the user's, in time linear in the length of the text.

The pattern is a regular expression of RE2, which Arrow comes with: it never backtracks, so no pattern can hang on any
text. RE2 has no lookaround and no backreferences. A group in the pattern holds the label, or several labels separated
by commas; without one, the label is the whole marker.
"""

from functools import lru_cache

import pyarrow as pa

LONGEST_PATTERN = 200
"""Maximum number of characters of a pattern."""

LONGEST_MARKER = 200
"""Maximum number of characters of a marker; what is longer is text, not a marker."""

_SIGNS = tuple(map(chr, range(0xE000, 0xE040)))
"""Private-use characters; three that a text does not contain mark what was found."""


def pattern_problem(pattern: str) -> str | None:
    r"""Return what is wrong with a pattern; None if it can be used.

    >>> pattern_problem(r"\(see (\w+)\)") is None
    True
    >>> pattern_problem("(?<=x)y")
    'cannot be read: invalid perl operator: (?<=; wanted a regular expression of RE2, which has no lookaround'
    >>> pattern_problem("x*")
    'matches the empty text; every marker has at least one character'
    >>> pattern_problem(r"(\w)=(\w)")
    'has 2 groups; it has one around the label, or none: (?:...) is a group that does not count'
    """
    if len(pattern) > LONGEST_PATTERN:
        return f"has {len(pattern):,} characters; the maximum is {LONGEST_PATTERN}"
    try:
        is_empty = _replace("", pattern, "x") == "x"
        groups = _count_groups(pattern)
    except pa.ArrowInvalid as error:
        why = str(error).partition(": ")[2] or str(error)
        return f"cannot be read: {why}; wanted a regular expression of RE2, which has no lookaround"
    if is_empty:
        return "matches the empty text; every marker has at least one character"
    if groups > 1:
        return f"has {groups} groups; it has one around the label, or none: (?:...) is a group that does not count"
    return None


def find_by_pattern(text: str, pattern: str | None) -> list[tuple[int, int, str]]:
    r"""Return start, end and label of each marker that a pattern finds; none without a pattern.

    >>> find_by_pattern("It rains {{cite a1}}.", r"\{\{cite (\w+)\}\}")
    [(9, 20, 'a1')]
    >>> find_by_pattern("It rains §2.", r"§\d")
    [(9, 11, '§2')]
    """
    if pattern is None or not text:
        return []
    readable = text.encode("utf-8", "replace").decode()  # a lone surrogate becomes one question mark
    free = [sign for sign in _SIGNS if sign not in readable][:3]
    if len(free) < len("<|>"):
        return []
    begin, middle, end = free
    group = 1 if _count_groups(pattern) else 0
    marked = _replace(readable, pattern, rf"{begin}\0{middle}\{group}{end}")
    found: list[tuple[int, int, str]] = []
    position = 0
    for number, part in enumerate(marked.split(begin)):
        rest = part
        if number:
            whole, _, label_and_rest = part.partition(middle)
            label, _, rest = label_and_rest.partition(end)
            if 0 < len(whole) <= LONGEST_MARKER and label.strip():
                found.append((position, position + len(whole), label.strip()))
            position += len(whole)
        position += len(rest)
    return found


@lru_cache(maxsize=64)
def _count_groups(pattern: str) -> int:
    """Return the number of groups of a pattern, up to 2."""
    for groups in (2, 1):
        try:
            _replace("", pattern, rf"\{groups}")
        except pa.ArrowInvalid as error:
            if "Rewrite schema" not in str(error):
                raise
        else:
            return groups
    return 0


def _replace(text: str, pattern: str, by: str) -> str:
    import pyarrow.compute as pc  # noqa: PLC0415 only a run with a pattern needs it

    replaced: str = pc.replace_substring_regex(pa.array([text]), pattern, by)[0].as_py()
    return replaced
