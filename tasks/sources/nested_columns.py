"""Add the values at paths to the rows of a source, as columns named by the paths."""

from collections.abc import Generator, Iterable, Mapping
from contextlib import closing
from itertools import islice
from typing import Any

from tasks.options.source_options import SourceOptions
from tasks.sources.cells.paths import MISSING, Step, list_paths, parse_path, read_path
from tasks.sources.readers.protocol import RawRow, RowSource, Unreadable

_FIRST_ROWS = 1000
"""Rows in which a path is looked for in a format whose columns are known before the rows."""
_LISTED_ROWS = 20
_MOST_PATHS = 1000


class NestedColumns(RowSource):
    """A source whose rows have the values at paths as further columns. A column with the same name is left as it is.

    Args:
        paths: Paths, by the names of their columns.
    """

    def __init__(self, source: RowSource, paths: Mapping[str, tuple[Step, ...]]) -> None:
        super().__init__(source.name)
        self._source = source
        self._paths = paths
        self.unit = source.unit
        self.text_cells = source.text_cells
        self.has_schema = source.has_schema
        self.fills_keys = source.fills_keys

    def configure(self, options: SourceOptions) -> None:
        """Configure the source of the rows."""
        self._source.configure(options)

    @property
    def warnings(self) -> tuple[str, ...]:
        """The warnings about the source."""
        return self._source.warnings

    @property
    def hints(self) -> tuple[str, ...]:
        """The hints of the source."""
        return self._source.hints

    def where(self, number: int) -> str:
        """Return the place of a row."""
        return self._source.where(number)

    def rows(self, batch_rows: int) -> Generator[RawRow, None, None]:
        """Yield the rows with their further columns."""
        with closing(self._source.rows(batch_rows)) as rows:
            for row in rows:
                yield row if isinstance(row.content, Unreadable) else row._replace(content=self._add(row.content))

    def column_sets(self, limit: int | None) -> Generator[Iterable[str], None, None]:
        """Yield the columns of the source, and of the first rows the paths that lead somewhere."""
        if not self.has_schema:
            yield from super().column_sets(limit)
            return
        yield from self._source.column_sets(limit)
        missing = dict(self._paths)
        with closing(self.rows(batch_rows=100)) as rows:
            for row in islice(rows, min(limit or _FIRST_ROWS, _FIRST_ROWS)):
                if not missing:
                    break
                if not isinstance(row.content, Unreadable):
                    found = [name for name in missing if name in row.content]
                    for name in found:
                        del missing[name]
                    yield found

    def list_paths(self) -> list[str]:
        """Return the paths of the values in the first rows, for messages."""
        return list_paths_of(self._source)

    def _add(self, content: Mapping[str, object]) -> Mapping[str, Any]:
        values = {name: read_path(content, steps) for name, steps in self._paths.items() if name not in content}
        return {**content, **{name: value for name, value in values.items() if value is not MISSING}}


def list_paths_of(source: RowSource) -> list[str]:
    """Return the paths of the values in the first rows of a source, for messages."""
    found: dict[str, None] = {}
    with closing(source.rows(batch_rows=_LISTED_ROWS)) as rows:
        for row in islice(rows, _LISTED_ROWS):
            if not isinstance(row.content, Unreadable):
                found.update(dict.fromkeys(islice(list_paths(row.content), _MOST_PATHS)))
    return list(found)


def with_paths(source: RowSource, options: SourceOptions) -> RowSource:
    """Return a source with the columns of the paths that the options name.

    Args:
        options: Options whose `column_map` and `id_column` may name paths.
    """
    names = (*options.column_map, *((options.id_column,) if options.id_column else ()))
    paths = {name: steps for name in names if (steps := parse_path(name)) is not None}
    return NestedColumns(source, paths) if paths else source
