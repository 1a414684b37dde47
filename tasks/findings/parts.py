"""Parts of a report that findings provide, and figures for monitoring."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True)
class Fact:
    """Lines under a title in a list of facts of the report.

    Args:
        about: Further words on the last line.
        of_list: Title of the list; empty for the first one.
    """

    title: str
    lines: Sequence[str]
    about: str = ""
    of_list: str = ""


@dataclass(frozen=True, slots=True)
class Templated:
    """A part of the report that a template of the room of its finding renders.

    Args:
        template: Name of the template: the room, a slash, and the file.
        content: Variables of the template, besides those that every part has.
    """

    template: str
    content: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Figure:
    """A figure of a run for monitoring.

    Args:
        name: Name of the gauge, without the prefix of this package.
        labels: Label -> value; names only, no text of the data.
    """

    name: str
    description: str
    value: float | None
    labels: Mapping[str, str] = field(default_factory=dict)
