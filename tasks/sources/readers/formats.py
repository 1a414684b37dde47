"""Select the reader of a file by its extension."""

from collections.abc import Callable
from typing import TypeAlias

from metric_core.errors import SourceError
from tasks.sources.readers.arrow_files import ArrowFileSource
from tasks.sources.readers.delimited import DelimitedSource
from tasks.sources.readers.json_document import open_json
from tasks.sources.readers.json_lines import JsonLinesSource
from tasks.sources.readers.parquet import ParquetSource
from tasks.sources.readers.protocol import RowSource
from tasks.sources.readers.source_files import DataFile

Opener: TypeAlias = Callable[[DataFile], RowSource]

OPENERS: dict[str, Opener] = {
    ".jsonl": JsonLinesSource,
    ".ndjson": JsonLinesSource,
    ".json": open_json,
    ".csv": DelimitedSource,
    ".tsv": DelimitedSource,
    ".parquet": ParquetSource,
    ".arrow": ArrowFileSource,
    ".feather": ArrowFileSource,
}
"""Mapping from extension to the opener of such files. Extensions with the same opener are the same format."""

SUPPORTED = (
    "supported are .jsonl, .ndjson, .json, .csv and .tsv (also followed by .gz, .bz2, .xz or .zst), .parquet, .arrow, "
    ".feather, several files of one of these formats as a folder or a pattern like logs/*.jsonl, a folder written by "
    "datasets.save_to_disk, hub:owner/name, and traces:PATH for traces"
)
"""The supported sources, for messages."""

_TEXT_FORMATS = (".jsonl", ".ndjson", ".json", ".csv", ".tsv")


def find_opener(file: DataFile) -> Opener:
    """Return the opener of a file, by its name alone.

    Raises:
        SourceError: The name has no extension of a supported format.
    """
    opener = OPENERS.get(file.extension)
    if opener is None:
        got = f"the extension {file.extension!r}" if file.extension else "no extension"
        raise SourceError(f"{file.name} has {got}; {SUPPORTED}")
    if file.compression and file.extension not in _TEXT_FORMATS:
        raise SourceError(f"{file.name} is compressed as a whole, which {file.extension} files are not; decompress it")
    return opener
