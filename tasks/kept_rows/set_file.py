"""Read and write a test set of kept rows: JSON Lines, which runs read as any other data."""

from collections.abc import Generator, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from filelock import FileLock

from metric_core.errors import SourceError
from metric_core.parsing.regular_files import regular
from metric_core.parsing.strict_json import parse_json
from tasks.kept_rows.kept_row import KeptRow, RowState
from tasks.runtime.atomic_files import output_file, sync_to_disk, translate_write_errors
from tasks.runtime.jsonl_text import split_json_lines, to_json_lines
from tasks.sources.readers.installed_reader import InstalledReader
from tasks.sources.readers.protocol import RawRow, RowSource
from tasks.sources.readers.source_files import DataFile


@contextmanager
def open_set(path: Path) -> Iterator[None]:
    """Let nobody else change a set until the block ends.

    Raises:
        AssayError: Its folder cannot be written.
    """
    with translate_write_errors(f"the set {path}"):
        path.parent.mkdir(parents=True, exist_ok=True)
        with FileLock(path.with_name(f".{path.name}.lock")):
            yield


def read_set(path: Path) -> list[KeptRow]:
    """Return the rows of a set; none if it does not exist.

    Raises:
        SourceError: It cannot be read, or a line is no row.
    """
    if not path.exists():
        return []
    try:
        return parse_set(regular(path).read_text(encoding="utf-8-sig"), str(path))
    except (OSError, UnicodeDecodeError) as error:
        raise SourceError(f"{path} cannot be read: {error}") from error


def parse_set(text: str, name: str) -> list[KeptRow]:
    """Return the rows of the text of a set.

    Raises:
        SourceError: A line is no row.
    """
    rows: list[KeptRow] = []
    for number, line in enumerate(split_json_lines(text), start=1):
        try:
            rows.append(KeptRow.from_json(parse_json(line)))
        except (ValueError, TypeError, AttributeError) as error:
            raise SourceError(
                f"{name}, line {number}: not a row that `assay keep` wrote ({error}). Repair or remove this line."
            ) from error
    return rows


def write_set(path: Path, rows: Iterable[KeptRow]) -> None:
    """Write a set whole or not at all: a process that is killed leaves the earlier one.

    Raises:
        AssayError: It cannot be written.
    """
    with output_file(path, "the set") as temporary:
        temporary.write_text(to_json_lines(row.to_json() for row in rows), encoding="utf-8", newline="\n")
        sync_to_disk(temporary)


class AskedRows(RowSource):
    """The rows of sets that are asked: all but those whose evidence is gone."""

    unit = "line"

    def __init__(self, files: Sequence[DataFile], name: str, root: str, warnings: Sequence[str]) -> None:
        del root, warnings  # of files that are put together
        super().__init__(name)
        self._files = files

    def rows(self, batch_rows: int) -> Generator[RawRow, None, None]:
        """Yield the rows."""
        del batch_rows  # what is known of a set is read as a whole
        for file in self._files:
            with file.open() as opened:
                rows = parse_set(opened.read().decode("utf-8-sig"), file.name)
            for number, row in enumerate(rows, start=1):
                if row.kept is None or row.kept.state is not RowState.RETIRED:
                    yield RawRow(number, row.content, file.name if len(self._files) > 1 else "")


ASKED_ROWS = InstalledReader(AskedRows, (".jsonl",))
