"""Several files of one format, read one after the other as if they were one."""

from bisect import bisect
from collections.abc import Callable, Generator, Iterable, Sequence
from contextlib import closing

from tasks.sources.readers.protocol import RawRow, RowSource
from tasks.sources.source_files import DataFile


class ConcatenatedSource(RowSource):
    """Files of one format. Numbers count rows over all of them; the file and the place in it stand beside.

    One file is open at a time. Nothing is asked of the columns: one that a file lacks is null in its rows.

    Args:
        files: at least one, in order.
        opener: opens each of them.
        name: all of them as messages name them.
        root: what the names of all files begin with, left out where rows are named.
        warnings: what a user might not expect of them as a whole.
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

    @property
    def warnings(self) -> tuple[str, ...]:
        """What a user might not expect of the files as a whole."""
        return self._warnings

    @property
    def hints(self) -> tuple[str, ...]:
        """Those of the files read so far."""
        return self._hints

    def where(self, number: int) -> str:
        """The row and its file."""
        file = self._files[bisect(self._last_rows, number - 1)]
        return f"{self.unit} {number} ({self._short(file)})"

    def column_sets(self, limit: int | None) -> Generator[Iterable[str], None, None]:
        """The schema of each file, or the columns of the first rows over all files."""
        if not self.has_schema:
            yield from super().column_sets(limit)
            return
        for file in self._files:
            yield from self._opener(file).column_sets(limit)

    def rows(self, batch_rows: int) -> Generator[RawRow, None, None]:
        """The rows of each file."""
        number = 0
        self._last_rows = []
        for file in self._files:
            source = self._opener(file)
            name = self._short(file)
            with closing(source.rows(batch_rows)) as rows:
                for number, row in enumerate(rows, start=number + 1):  # noqa: B020 - goes on where the last file ended
                    yield RawRow(number, row.content, f"{name}, {row.detail or source.where(row.number)}")
            self._last_rows.append(number)
            self._hints = tuple(dict.fromkeys((*self._hints, *source.hints)))

    def _short(self, file: DataFile) -> str:
        return file.name.removeprefix(self._root)
