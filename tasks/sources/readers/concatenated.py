"""Read several files of one format as one source."""

from bisect import bisect
from collections.abc import Callable, Generator, Iterable, Sequence
from contextlib import closing

from tasks.sources.readers.protocol import RawRow, RowSource
from tasks.sources.readers.source_files import DataFile


class ConcatenatedSource(RowSource):
    """A source of files of one format. Row numbers continue over the files; the file and its line are details.

    One file is open at a time. The files may have different columns: a missing column is null.

    Args:
        files: Files in order, at least one.
        name: Name of the source in messages.
        root: Common prefix of the names of the files, left out in the places of rows.
        warnings: Warnings about the files as a whole.
    """

    def __init__(
        self,
        files: Sequence[DataFile],
        opener: Callable[[DataFile], RowSource],
        name: str,
        root: str,
        warnings: Sequence[str] = (),
    ) -> None:
        super().__init__(name)
        self._files = files
        self._opener = opener
        self._root = root
        self._warnings = tuple(warnings)
        self._hints: tuple[str, ...] = ()
        self._last_rows: list[int] = []
        first = opener(files[0])
        self.text_cells = first.text_cells
        self.has_schema = first.has_schema
        self.fills_keys = first.fills_keys

    @property
    def warnings(self) -> tuple[str, ...]:
        """Warnings about the files as a whole."""
        return self._warnings

    @property
    def hints(self) -> tuple[str, ...]:
        """The hints of the files read so far."""
        return self._hints

    def where(self, number: int) -> str:
        """Return the row and its file."""
        file = self._files[bisect(self._last_rows, number - 1)]
        return f"{self.unit} {number} ({self._short(file)})"

    def column_sets(self, limit: int | None) -> Generator[Iterable[str], None, None]:
        """Yield the columns of each file's schema, or those of the first rows over all files."""
        if not self.has_schema:
            yield from super().column_sets(limit)
            return
        for file in self._files:
            yield from self._opener(file).column_sets(limit)

    def rows(self, batch_rows: int) -> Generator[RawRow, None, None]:
        """Yield the rows of each file."""
        number = 0
        self._last_rows = []
        for file in self._files:
            source = self._opener(file)
            name = self._short(file)
            with closing(source.rows(batch_rows)) as rows:
                for number, row in enumerate(rows, start=number + 1):  # noqa: B020 - continues the numbers of the last file
                    yield RawRow(number, row.content, f"{name}, {row.detail or source.where(row.number)}")
            self._last_rows.append(number)
            self._hints = tuple(dict.fromkeys((*self._hints, *source.hints)))

    def _short(self, file: DataFile) -> str:
        return file.name.removeprefix(self._root)
