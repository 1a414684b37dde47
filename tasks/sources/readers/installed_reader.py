"""Declare a reader of a kind of files that a package brings."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from metric_core.errors import PluginError
from tasks.plugins.load_object import Group, load_object
from tasks.sources.readers.protocol import RowSource
from tasks.sources.readers.source_files import DataFile


@dataclass(frozen=True, slots=True)
class InstalledReader:
    """A reader of files that one or several of them hold together, such as traces.

    The name of its entry point and a colon begin the addresses of its sources: `NAME:PATH`.

    Args:
        open: Function that opens files: the files, at least one; the name of the source in messages; the common prefix
            of the names of the files; and warnings about the files as a whole.
        extensions: Extensions of the files that are read of a folder; a single file may have any name.
    """

    open: Callable[[Sequence[DataFile], str, str, Sequence[str]], RowSource]
    extensions: tuple[str, ...]


def find_reader(name: str) -> InstalledReader:
    """Return the reader with a name.

    Raises:
        PluginError: No package has it, or it is none.
    """
    reader = load_object(Group.READERS, name).obj
    if not isinstance(reader, InstalledReader):
        raise PluginError(f"the reader {name} is {reader!r}, wanted an InstalledReader of rag_assay.plugins")
    return reader
