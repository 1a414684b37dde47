"""Read the guide to a metric: the Markdown file with its name, beside the module that declares it."""

import re
from dataclasses import dataclass
from importlib.resources import files

_HEADING = re.compile(r"^## (.+)\n", re.MULTILINE)
_ITEM = re.compile(r"^- ", re.MULTILINE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Guide:
    """The part of `docs/metrics/NAME.md` and `assay metrics NAME` that goes beyond the declaration of a metric.

    Args:
        formula: Formula in one or more lines of plain text.
        notes: Sentences on what the metric reads, and on its special cases; tables in Markdown, after blank lines.
        example: Worked example: parameters, evidence, and the score with its calculation, a line per fact.
        differences: Sentences on what differs from Ragas and the documents that define the metric, and why; empty if
            they do not define it.
    """

    formula: str
    notes: tuple[str, ...]
    example: str
    differences: tuple[str, ...]


def read_guide(metric: str) -> Guide:
    """Return the guide to a builtin metric.

    >>> read_guide("string_similarity").formula
    '1 - distance(response, reference) / greatest distance of strings of these lengths'
    """
    text = files(__package__).joinpath(f"{metric}.md").read_text(encoding="utf-8")
    _, *parts = _HEADING.split(text)
    sections = dict(zip(parts[::2], parts[1::2], strict=True))
    return Guide(
        formula=_block(sections["Formula"]),
        notes=_items(sections["Notes"]),
        example=_block(sections["Example"]),
        differences=_items(sections.get("Differences from Ragas and the documents", "")),
    )


def _block(section: str) -> str:
    return section.strip().removeprefix("```text\n").removesuffix("\n```")


def _items(section: str) -> tuple[str, ...]:
    return tuple("\n\n".join(map(_paragraph, item.strip().split("\n\n"))) for item in _ITEM.split(section)[1:])


def _paragraph(lines: str) -> str:
    separator = "\n" if lines.lstrip().startswith("|") else " "
    return separator.join(map(str.strip, lines.splitlines()))
