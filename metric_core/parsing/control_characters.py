r"""Show control characters of data as escapes, so that no text of the data controls a terminal or reorders a line.

Escapes have the form `\u001b`, in which they are valid in the strings of JSON, too.
"""

import re

_CONTROLS = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u200b\u2028-\u202e\u2060-\u2069\ufeff]")
"""C0 without tab and newline, DEL, C1, line separators, embeddings and overrides of direction, invisible characters.

Joiners and marks of direction, U+200C to U+200F, are left: Persian words, composed emoji and Hebrew lists need them.
"""


def escape_controls(text: str) -> str:
    r"""Return the text with its control characters, but for tab and newline, as escapes.

    >>> escape_controls("a\tb\nc \x1b]52;c;AA\x07")
    'a\tb\nc \\u001b]52;c;AA\\u0007'
    """
    return text if text.isascii() and text.isprintable() else _CONTROLS.sub(_escape, text)


def _escape(found: re.Match[str]) -> str:
    return f"\\u{ord(found[0]):04x}"
