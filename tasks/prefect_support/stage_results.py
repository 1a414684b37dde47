"""What Prefect keeps of a stage that has been computed: a reference, as JSON, under the stage's key.

A record that is kept is not trusted. Prefect reads a record with the serializer that the record names, so that a
planted one can run anything; this storage hands out only records that name ours. And a reference is worth as much as
its table: one whose table is gone, damaged or has gaps that asking again may fill is as good as none, and the stage
is computed anew.
"""

import json
import logging
import posixpath
from typing import Any, Literal

from prefect.filesystems import WritableFileSystem
from prefect.serializers import Serializer

from metric_core.errors import AssayError
from tasks.tables.inventory import RECORDS
from tasks.tables.table_files import atomic_write, filesystem, touch, translate_storage_errors
from tasks.tables.table_store import StageRef, verify

_logger = logging.getLogger(__name__)


class StageRefSerializer(Serializer):
    """References as plain JSON: reading one makes a StageRef and nothing else."""

    type: Literal["assay-stage-ref"] = "assay-stage-ref"

    def dumps(self, obj: StageRef) -> bytes:
        """The JSON of a reference."""
        return obj.model_dump_json().encode()

    def loads(self, blob: bytes) -> StageRef:
        """The reference in a JSON text."""
        return StageRef.model_validate_json(blob)


class UnusableRecordError(AssayError):
    """A record that is not there, or is not to be used; the stage is computed anew."""


class StageResults(WritableFileSystem):
    """Records below a folder or any fsspec URL, beside the stage tables.

    Args:
        root: root of the store of stage tables.
    """

    _block_type_name = "rag-assay stage results"
    _block_type_slug = "assay-stage-results"

    root: str

    def read_path(self, path: str, _sync: bool = True) -> bytes:  # type: ignore[override] # Prefect calls it both ways
        """The record with this key.

        Raises:
            UnusableRecordError: there is none that can be used.
        """
        fs, root = filesystem(self.root)
        place = posixpath.join(root, RECORDS, f"{path}.json")
        try:
            content: bytes = fs.cat_file(place)
        except FileNotFoundError as error:
            raise UnusableRecordError(f"there is no record {place}") from error
        except translate_storage_errors() as error:
            _logger.warning("the record %s can not be read (%s); its stage is computed anew", place, error)
            raise UnusableRecordError(f"the record {place} can not be read: {error}") from error
        try:
            verify(_reference(content))
        except (AssayError, ValueError, KeyError, TypeError) as error:
            _logger.warning("the record %s is not used: %s; its stage is computed anew", place, error)
            raise UnusableRecordError(str(error)) from error
        touch(fs, place)
        return content

    async def aread_path(self, path: str) -> bytes:
        """As `read_path`."""
        return self.read_path(path)

    def write_path(self, path: str, content: bytes, _sync: bool = True) -> None:  # type: ignore[override] # as above
        """Keeps a record, unless its table has gaps: what failed is to be asked again by the next run."""
        if _reference(content).usage.failed:
            return
        fs, root = filesystem(self.root)
        atomic_write(fs, posixpath.join(root, RECORDS, f"{path}.json"), content)

    async def awrite_path(self, path: str, content: bytes) -> None:
        """As `write_path`."""
        self.write_path(path, content)

    def find(self, key: str) -> StageRef | None:
        """The reference under a key; None if there is none that can be used."""
        try:
            return _reference(self.read_path(key))
        except UnusableRecordError:
            return None

    def _resolve_path(self, path: str) -> None:
        """Tells Prefect that keys are not paths of the local disk."""


def _reference(content: bytes) -> StageRef:
    record: dict[str, Any] = json.loads(content)
    serializer = record["metadata"]["serializer"]
    wanted = StageRefSerializer().model_dump(mode="json")
    if serializer != wanted:
        raise ValueError(f"it names the serializer {serializer!r}, wanted {wanted!r}")
    return StageRef.model_validate_json(record["result"])
