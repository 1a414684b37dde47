r"""Find what looks like a citation marker of a form that is not read, such as {1}, [a] or (Smith, 2020).

What it finds is only counted, so that a run can say that its responses may cite in another way.
"""

import re
from collections.abc import Collection

from metric_core.claims.citation_forms import CITED_WORDS

_YEAR = r"(?:19|20)\d\d[a-z]?"
_NAME = r"[^\W\d_a-z][\w'\u2019-]+"
_OTHERS = rf"[ ](?:et[ ]al\.?|(?:and|&|und|y|et)[ ]{_NAME})"
_LIKELY = re.compile(
    rf"""
    (?:
        \{{\s?\d{{1,3}}(?:\s?,\s?\d{{1,3}})*\s?\}}                                      # {{1, 2}}
      | <\s?\d{{1,3}}\s?>                                                               # <1>
      | [\u27e8\u300a\u2039]\s?\d{{1,3}}\s?[\u27e9\u300b\u203a]                         # ⟨1⟩
      | \|\d{{1,3}}\|                                                                   # |1|
      | (?<=[\w.,!?])\^(?:\d{{1,2}}\b|[\[({{]\d{{1,3}}[\])}}])                          # ^1, ^[1]
      | <(?P<tag>ref|source|src|doc|citation|note)\b[^<>]{{0,80}}(?:/>|>[^<>]{{0,80}}</(?P=tag)>)
      | (?:(?<=[^\W\d_]{{4}})|(?<!\w))\[(?:[a-z*]|\u2020|\u2021)\]                    # [a]
      | \[[^\W\d_][^\[\]\n|]{{0,40}}[ _:.\#-]\d{{1,6}}\](?![(:])                        # [Beleg-Nr. 2]
      | \((?i:{CITED_WORDS})\b[ ]?[:.\#-]?[ ]?[^()\n]{{1,40}}\)                         # (source: the handbook)
      | \({_NAME}(?:{_OTHERS},?|,)[ ]{_YEAR}\) | \[{_NAME}(?:{_OTHERS})?,?[ ]{_YEAR}\]  # (Smith, 2020)
      | (?<=\d)\u00b9
    )
    (?=[\s.,;:!?)\u3002]|\Z)
    """,
    re.VERBOSE,
)


def find_unread_marker(
    text: str, ids: Collection[str] = (), pattern: str | None = None, passages: int | None = None
) -> str | None:
    """Return the first part of a text that looks like a marker and is not read as one; None if there is none.

    Args:
        ids: Ids of the retrieved contexts.
        pattern: Further form of markers, which is read.
        passages: Number of retrieved contexts; None if it is not known.

    >>> find_unread_marker("It rains {1}."), find_unread_marker("It rains (Smith et al., 2020).")
    ('{1}', '(Smith et al., 2020)')
    >>> find_unread_marker("It rains [1] on `x{1}`.") is find_unread_marker("It lies in [0, 1] or {a}.") is None
    True
    """
    found = list(_LIKELY.finditer(text))
    if not found:
        return None
    from metric_core.claims.citations import find_citations, unread_spans  # noqa: PLC0415 compiles many patterns

    read = [(each.start, each.end) for each in find_citations(text, ids, pattern, passages)]
    taken = [*read, *unread_spans(text)]
    free = (each for each in found if not any(start < each.end() and each.start() < end for start, end in taken))
    return next((each[0] for each in free), None)
