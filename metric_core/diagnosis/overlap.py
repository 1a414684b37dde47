"""Decide whether two texts are about the same matter, by the share of one text's character trigrams in the other.

Source: Broder, "On the resemblance and containment of documents" (1997), containment of shingles; here the shingles are
three characters, so that inflected words and languages without spaces between words count too.
"""

import re
from collections.abc import Collection

SAME_MATTER = 0.5
"""Least share of a text's trigrams that another text has if both are about the same matter."""

_WORDS = re.compile(r"\w+")


def trigrams(text: str) -> frozenset[str]:
    """Return the character trigrams of a text, in lower case and without punctuation.

    >>> sorted(trigrams("Go!"))
    [' go', 'go ']
    """
    line = f" {' '.join(_WORDS.findall(text.casefold()))} "
    return frozenset(line[i : i + 3] for i in range(len(line) - 2))


def coverage(claim: Collection[str], text: Collection[str]) -> float:
    """Return the share of a claim's trigrams that a text has; 0 for a claim without any.

    >>> coverage(trigrams("The fee is 40 euros."), trigrams("The fee is 60 euros a year.")) > SAME_MATTER
    True
    >>> coverage(trigrams("Lunch is free on Mondays."), trigrams("The fee is 60 euros a year.")) < SAME_MATTER
    True
    """
    return sum(gram in text for gram in claim) / len(claim) if claim else 0.0
