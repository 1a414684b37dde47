"""Read data sets of the `datasets` library: objects, folders written by save_to_disk, and names on the hub.

The library is imported only where it is needed, because the import is slow.
"""

import os
import sys
from collections.abc import Generator, Iterable
from pathlib import Path
from typing import Any

from metric_core.errors import SourceError
from metric_core.parsing.regular_files import check_folder
from tasks.runtime.telemetry import disable_telemetry
from tasks.runtime.wording import quote_names, suggest_nearest
from tasks.sources.readers.arrow_tables import iter_rows, require_unique
from tasks.sources.readers.protocol import RawRow, RowSource
from tasks.sources.readers.read_limits import Expansion
from tasks.sources.readers.source_files import translate_read_errors


class DatasetSource(RowSource):
    """A `datasets.Dataset` with any format and selection of rows."""

    has_schema = True
    fills_keys = True

    def __init__(self, dataset: Any, name: str) -> None:
        super().__init__(name)
        self._dataset = dataset

    def column_sets(self, limit: int | None) -> Generator[Iterable[str], None, None]:  # noqa: ARG002 - has a schema
        """Yield the column names."""
        yield require_unique(self._dataset.column_names, self.name)

    def rows(self, batch_rows: int) -> Generator[RawRow, None, None]:
        """Yield the rows, in the data set's order."""
        with translate_read_errors(self.name):
            tables = self._dataset.with_format("arrow").iter(batch_size=batch_rows)
            batches = (batch for table in tables for batch in table.to_batches())
            expansion = Expansion(self._size, self.name)
            for number, content in enumerate(iter_rows(batches, batch_rows, expansion), start=1):
                yield RawRow(number, content)

    @property
    def _size(self) -> int | None:
        """The size of the files of the data set; None if it is in memory."""
        paths = [file["filename"] for file in self._dataset.cache_files]
        return sum(map(os.path.getsize, paths)) if paths else None


def open_object(source: Any) -> RowSource | None:
    """Return a source of a data set object; None if the object is not a data set."""
    datasets = sys.modules.get("datasets")
    if datasets is None or not isinstance(source, datasets.Dataset | datasets.DatasetDict):
        return None
    return _select_split(source, None, "the data set")


def open_folder(path: str, split: str | None, name: str) -> RowSource:
    """Return a source of a folder written by `save_to_disk`.

    Raises:
        SourceError: The folder cannot be read, the split does not exist, or there are several and none is named.
    """
    disable_telemetry()
    import datasets  # noqa: PLC0415

    try:
        with translate_read_errors(name):
            check_folder(Path(path))
            loaded = datasets.load_from_disk(path)
    except (ValueError, TypeError, KeyError) as error:
        raise SourceError(f"{name} cannot be read as a data set: {error}") from error
    return _select_split(loaded, split, name)


def open_hub(address: str) -> RowSource:
    """Return a source of a data set on the hub.

    Args:
        address: `owner/name` or `owner/name:configuration`, each followed by `#split` if there are several splits.

    Raises:
        SourceError: The data set cannot be loaded, the split does not exist, or there are several and none is named.
    """
    disable_telemetry()
    import datasets  # noqa: PLC0415

    path, _, split = address.partition("#")
    repository, _, configuration = path.partition(":")
    name = f"hub:{address}"
    if not repository.strip("/ "):
        raise SourceError(f"{name} names no data set; write hub:owner/name")
    try:
        with translate_read_errors(name):
            loaded = datasets.load_dataset(repository, configuration or None)
    except (ValueError, datasets.exceptions.DatasetsError) as error:
        hint = f"to name a configuration, write hub:{repository}:configuration"
        raise SourceError(f"{name} cannot be loaded: {error} ({hint})") from error
    return _select_split(loaded, split or None, name)


def _select_split(loaded: Any, split: str | None, name: str) -> RowSource:
    if not hasattr(loaded, "keys"):
        if split is not None:
            raise SourceError(f"{name} has no splits, got the split {split!r}; leave out #{split}")
        return DatasetSource(loaded, name)
    splits = [str(key) for key in loaded]
    if split is None and len(splits) == 1:
        split = splits[0]
    if split is None:
        raise SourceError(
            f"{name} has the splits {quote_names(splits)}; name one: #{next(iter(splits), 'split')} after a path "
            "or hub name, or the key of an object"
        )
    if split not in splits:
        near = suggest_nearest(split, splits)
        hint = f" Did you mean {near!r}?" if near else ""
        raise SourceError(f"{name} has no split {split!r}; it has {quote_names(splits)}.{hint}")
    return DatasetSource(loaded[split], name)
