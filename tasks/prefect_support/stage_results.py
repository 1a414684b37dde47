"""Store Prefect's result of a computed stage: a reference, as JSON, under the stage's key.

Stored records are not trusted. Prefect reads a record with the serializer that the record names, so that a planted
record could run any code; this storage returns only records that name StageRefSerializer. A record is also ignored,
and its stage recomputed, if its table is missing or damaged. A table with failed answers gets no record, so that the
next run asks again.
"""

import json
import logging
import posixpath
from typing import Any, Literal

from prefect.filesystems import WritableFileSystem
from prefect.serializers import Serializer

from metric_core.errors import AssayError
from tasks.tables.inventory import RECORDS
from tasks.tables.table_files import atomic_write, filesystem, storage_errors, touch
from tasks.tables.table_store import StageRef, verify

_logger = logging.getLogger(__name__)


class StageRefSerializer(Serializer):
    """A serializer of references as plain JSON that can only create a StageRef."""

    type: Literal["assay-stage-ref"] = "assay-stage-ref"

    def dumps(self, obj: StageRef) -> bytes:
        """Return the JSON of a reference."""
        return obj.model_dump_json().encode()

    def loads(self, blob: bytes) -> StageRef:
        """Return the reference in a JSON text."""
        return StageRef.model_validate_json(blob)


class UnusableRecordError(AssayError):
    """A record that does not exist or cannot be used; the stage is recomputed."""


class StageResults(WritableFileSystem):
    """A storage of records below a folder or an fsspec URL, beside the stage tables.

    Args:
        root: Path or URL of the table store.
    """

    _block_type_name = "rag-assay stage results"
    _block_type_slug = "assay-stage-results"

    root: str

    def read_path(self, path: str, _sync: bool = True) -> bytes:  # type: ignore[override] # Prefect calls it both ways
        """Return the record with this key.

        Raises:
            UnusableRecordError: There is no record that can be used.
        """
        fs, root = filesystem(self.root)
        location = posixpath.join(root, RECORDS, f"{path}.json")
        try:
            content: bytes = fs.cat_file(location)
        except FileNotFoundError as error:
            raise UnusableRecordError(f"there is no record {location}") from error
        except storage_errors() as error:
            _logger.warning("the record %s cannot be read (%s); its stage is recomputed", location, error)
            raise UnusableRecordError(f"the record {location} cannot be read: {error}") from error
        try:
            verify(_reference(content))
        except (AssayError, ValueError, KeyError, TypeError) as error:
            _logger.warning("the record %s is not used: %s; its stage is recomputed", location, error)
            raise UnusableRecordError(str(error)) from error
        touch(fs, location)
        return content

    async def aread_path(self, path: str) -> bytes:
        """Return the record with this key; see `read_path`."""
        return self.read_path(path)

    def write_path(self, path: str, content: bytes, _sync: bool = True) -> None:  # type: ignore[override] # as above
        """Write a record, unless its table has failed answers, which the next run asks for again."""
        if _reference(content).usage.failed:
            return
        fs, root = filesystem(self.root)
        atomic_write(fs, posixpath.join(root, RECORDS, f"{path}.json"), content)

    async def awrite_path(self, path: str, content: bytes) -> None:
        """Write a record; see `write_path`."""
        self.write_path(path, content)

    def find(self, key: str) -> StageRef | None:
        """Return the reference under a key; None if there is none that can be used."""
        try:
            return _reference(self.read_path(key))
        except UnusableRecordError:
            return None

    def _resolve_path(self, path: str) -> None:
        """Return None, which tells Prefect that keys are not paths of the local disk."""


def _reference(content: bytes) -> StageRef:
    record: dict[str, Any] = json.loads(content)
    serializer = record["metadata"]["serializer"]
    wanted = StageRefSerializer().model_dump(mode="json")
    if serializer != wanted:
        raise ValueError(f"it names the serializer {serializer!r}, wanted {wanted!r}")
    return StageRef.model_validate_json(record["result"])
