"""Find the tables that earlier runs computed, and record new ones: a record per table, under the key of the stage.

Records are plain JSON and are not trusted: one that cannot be read, or whose table is missing or damaged, is ignored,
and its stage is computed. A table with failed answers gets no record, so that the next run asks again.
"""

import json
import logging
import posixpath
from contextlib import suppress

from metric_core.errors import AssayError
from tasks.runtime.usage import KindUsage, StageUsage
from tasks.tables.table_files import atomic_write, filesystem, storage_errors, touch
from tasks.tables.table_store import StageRef, verify

RECORDS = "results"
"""Name of the folder of records."""

_logger = logging.getLogger(__name__)


class KeptTables:
    """The records of a table store. May be used from several threads.

    Args:
        root: Path or URL of the table store.
    """

    def __init__(self, root: str) -> None:
        self._fs, folder = filesystem(root)
        self._folder = posixpath.join(folder, RECORDS)

    def find(self, key: str) -> StageRef | None:
        """Return the reference under a key; None if there is none that can be used.

        The usage of the reference counts every question as cached.

        Args:
            key: Key of a stage's table.
        """
        location = self._location(key)
        try:
            content: bytes = self._fs.cat_file(location)
        except FileNotFoundError:
            return None
        except storage_errors() as error:
            _logger.warning("the record %s cannot be read (%s); its stage is recomputed", location, error)
            return None
        try:
            kept = StageRef.model_validate_json(json.loads(content)["result"])
            ref = verify(kept)
        except (AssayError, ValueError, KeyError, TypeError) as error:
            _logger.warning("the record %s is not used: %s; its stage is recomputed", location, error)
            return None
        if ref == kept:
            touch(self._fs, location)
        else:  # with the digest of the file as it is, the table is not decoded the next time
            with suppress(AssayError):
                self.keep(key, ref)
        return ref.model_copy(update={"usage": kept_usage(ref.usage)})

    def keep(self, key: str, ref: StageRef) -> None:
        """Record a table under a key, unless it has failed answers.

        Args:
            key: Key of the table.
            ref: Reference to the table.

        Raises:
            AssayError: The record cannot be written.
        """
        if not ref.usage.failed:
            atomic_write(self._fs, self._location(key), json.dumps({"result": ref.model_dump_json()}).encode())

    def _location(self, key: str) -> str:
        return posixpath.join(self._folder, f"{key}.json")


def kept_usage(usage: StageUsage) -> StageUsage:
    """Return the cost of a table that is kept: its questions, all cached, and what the stage noticed about its texts.

    >>> kept_usage(StageUsage(questions=3, requests=3, prompt_tokens=900))
    StageUsage(questions=3, stored=3, requests=0, ...)
    """
    return StageUsage(
        questions=usage.questions,
        stored=usage.questions,
        long_texts=usage.long_texts,
        languages=usage.languages,
        kinds={kind: KindUsage(questions=cost.questions, stored=cost.questions) for kind, cost in usage.kinds.items()},
    )
