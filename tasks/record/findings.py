"""Entries of a record that belong to findings, whose types the rooms of the findings declare."""

from collections.abc import Mapping
from typing import Any, ClassVar, Generic, Self, TypeAlias, TypeVar, cast

from pydantic import ConfigDict, RootModel, ValidationError

from metric_core.errors import RunFolderError
from tasks.record.part import Part

T = TypeVar("T")
_AGAIN = "Evaluate the source again with `assay run`."


class FindingPart(Part):
    """The entry of a finding in a record.

    Attributes:
        entry: Name of the entry.
    """

    entry: ClassVar[str]


class FindingMap(RootModel[dict[str, T]], Generic[T]):
    """The entry of a finding with a value for each of several things, such as metrics.

    Attributes:
        entry: Name of the entry.
    """

    model_config = ConfigDict(frozen=True)

    entry: ClassVar[str]


class FindingList(RootModel[tuple[T, ...]], Generic[T]):
    """The entry of a finding with several values.

    Attributes:
        entry: Name of the entry.
    """

    model_config = ConfigDict(frozen=True)

    entry: ClassVar[str]


HasEntry: TypeAlias = FindingPart | FindingMap[Any] | FindingList[Any]
"""An entry of a finding."""

F = TypeVar("F", bound=HasEntry)


class Findings(Part):
    """A part of a record with the entries of findings besides its own.

    An entry that is read from a file is checked when it is asked for, because only the room of its finding knows its
    type: a record with an entry of a room that is not installed can be read.
    """

    model_config = ConfigDict(frozen=True, extra="allow")

    def find(self, kind: type[F]) -> F | None:
        """Return the entry of a finding; None without it.

        Raises:
            RunFolderError: The entry is damaged.
        """
        extra: dict[str, Any] = self.model_extra or {}
        found = extra.get(kind.entry)
        if found is None or isinstance(found, kind):
            return found
        try:
            checked = cast("F", kind.model_validate(found))
        except ValidationError as error:
            first = error.errors(include_url=False, include_context=False)[0]
            place = ".".join(map(str, (kind.entry, *first["loc"])))
            got = "" if first["type"] == "missing" else f", got {first['input']!r}"
            raise RunFolderError(
                f"the record of a run cannot be read: {place}: {first['msg']}{got[:300]}. {_AGAIN}"
            ) from error
        extra[kind.entry] = checked
        return checked

    def find_all(self, kind: type[FindingMap[T]]) -> Mapping[str, T]:
        """Return the values of a finding by name; none without the entry.

        Raises:
            RunFolderError: The entry is damaged.
        """
        found = self.find(kind)
        return {} if found is None else found.root

    def with_findings(self, *found: HasEntry | None) -> Self:
        """Return the part with entries of findings; None stands for a finding without one."""
        return self.extend(**{each.entry: each for each in found if each is not None})
