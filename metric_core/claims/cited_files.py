"""Read the files and pages that citation labels and the ids of contexts name."""

import re

FILE_SUFFIXES = r"(?:pdf|html?|docx?|md|txt|csv|pptx?|xlsx?|json|yaml|yml|rst|tex)"
"""Suffixes of files that are cited, as a regular expression."""

_FILE_IN_TEXT = re.compile(rf"[^\s\[\]()<>\"'`*|,;]+\.{FILE_SUFFIXES}\b", re.IGNORECASE)
_FILE_AT_START = re.compile(rf"(.+?\.{FILE_SUFFIXES})(?![a-z0-9])", re.IGNORECASE)
_SCHEME = re.compile(r"https?://(?:www\.)?", re.IGNORECASE)


def cited_file(text: str) -> str | None:
    """Return the name of the first file in a text; None if there is none.

    >>> cited_file("See the plan in docs/plan.pdf, page 3."), cited_file("See page 3.")
    ('docs/plan.pdf', None)
    """
    found = _FILE_IN_TEXT.search(text)
    return None if found is None else found[0]


def file_of(label: str) -> str | None:
    """Return the file that a label or an id is a part of, in lower case; None if it names no file.

    >>> file_of("docs/Benefit plan.pdf#page=3"), file_of("plan.md:2"), file_of("doc-3")
    ('docs/benefit plan.pdf', 'plan.md', None)
    """
    found = _FILE_AT_START.match(label.strip())
    return None if found is None else found[1].casefold().replace("\\", "/")


def is_same_file(one: str, other: str) -> bool:
    """Return whether two file names can mean the same file: they are equal, or one is the end of the other's path.

    >>> is_same_file("plan.pdf", "docs/plan.pdf"), is_same_file("a/plan.pdf", "b/plan.pdf")
    (True, False)
    """
    return one == other or one.endswith(f"/{other}") or other.endswith(f"/{one}")


def page_of(url: str) -> str | None:
    """Return the page that a URL leads to, whatever its scheme and part; None if it is not a URL.

    >>> page_of("https://www.example.org/a/#b"), page_of("http://example.org/a"), page_of("a.md")
    ('example.org/a', 'example.org/a', None)
    """
    scheme = _SCHEME.match(url)
    return None if scheme is None else url[scheme.end() :].partition("#")[0].rstrip("/") or None
