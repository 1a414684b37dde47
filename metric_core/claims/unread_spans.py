r"""Find the parts of a text in which nothing is a citation: code, formulas and lists of lists of numbers."""

import re

_UNREAD = re.compile(
    r"""
    ^[ ]{0,3}(?P<fence>`{3,}(?=[^`\n]*$)|~{3,})[^\n]*              # ```python ... ```, up to the end where it is open
      (?:\n(?![ ]{0,3}(?P=fence))[^\n]*)*(?:\n[ ]{0,3}(?P=fence)[^\n]*)?
  | (?P<ticks>`{1,3})(?!`)[^`]{1,4000}(?P=ticks)(?!`)              # `row[0]`
  | <(?P<tag>code|pre|math)\b[^<>]{0,100}>(?:[^<]|<(?!/?(?P=tag)\b))*</(?P=tag)>
  | \$\$[^$]{1,2000}\$\$
  | (?<![\w$\\])\$(?![\s$])[^$\n]{1,300}(?<![\s\\])\$(?![\d$])     # $x \in [0, 1]$, not 5 $ and 6 $
  | \\\((?:[^\\\n]|\\[^()\n])*\\\)                                 # \(x \in [0, 1]\)
  | \\\[(?:[^\\]|\\[^\[\]])*\\\]
  | \[\s*\[[\d.+-]+[,;\s][\d\s.,;+-]*\](?:[\s,;]*\[[\d\s.,;+-]*\])+\s*\]       # [[1, 2], [3, 4]]
    """,
    re.VERBOSE | re.MULTILINE,
)


def unread_spans(text: str) -> list[tuple[int, int]]:
    r"""Return start and end of each part of a text in which nothing is a citation, in order.

    >>> [text[slice(*span)] for text in ["Of `x[1]` and $y \\in [2, 3]$, 5 $ [4]."] for span in unread_spans(text)]
    ['`x[1]`', '$y \\in [2, 3]$']
    """
    return [match.span() for match in _UNREAD.finditer(text)]
