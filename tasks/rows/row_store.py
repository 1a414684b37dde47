"""Store the results of stages row by row, and find those that were computed in the same way from the same content.

A result is found by its key, which is the digest of everything that determines it. Files are not trusted: a damaged or
missing one is named in the log, and its rows count as missing, so that they are computed again. A row with a failed
answer is stored and never found.
"""

import logging
import posixpath
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from threading import Lock

import numpy as np
import pyarrow as pa
from fsspec.core import strip_protocol

from metric_core.schemas import SCHEMAS
from metric_core.stages import Stage
from tasks.rows.cached_usage import cached_usage, share_of
from tasks.rows.key_index import KeyIndex
from tasks.rows.mapped_arrays import MappedArrays
from tasks.rows.places import Places, Segment
from tasks.rows.row_digests import Digests
from tasks.rows.segment_files import (
    DATA,
    INDEX,
    SegmentIndex,
    SegmentNote,
    StoredSegment,
    decode_index,
    digest_file,
    file_state,
    new_stem,
    next_stem,
    read_folder,
    recipe_folder,
    write_segment,
)
from tasks.rows.segment_reader import SegmentReader
from tasks.rows.stage_rows import StageRows, bounds_from
from tasks.rows.table_files import filesystem, is_local, storage_errors, touch
from tasks.rows.table_store import conform
from tasks.runtime.usage import StageUsage

VERIFIED_BYTES = 64 << 20
"""Size of the files that are verified at a time."""

_NOT_STORED = "not-stored:"
"""Start of the path of a segment without a file."""

_logger = logging.getLogger(__name__)

_verified: dict[str, str] = {}
"""State of each file that this process has compared with its digest."""


@dataclass(eq=False)
class _Recipe:
    """The indexed rows of a recipe.

    Args:
        keys: Locations of the results, by key.
        states: Mapping from the path of each segment to the state of its file when it was listed.
        trusted: Paths of the segments that were written or verified.
        damaged: Paths of the segments that cannot be used.
    """

    keys: KeyIndex
    states: dict[str, str] = field(default_factory=dict)
    trusted: set[str] = field(default_factory=set)
    damaged: set[str] = field(default_factory=set)


class RowStore:
    """The rows of stages in a table store. May be used from several threads.

    An object is for one run: it reads the indexes of a recipe once, does not see what other objects write later, and
    records once that it uses a segment.

    Args:
        root: Path or URL of the table store; created when the first rows are written.
        read_only: True to keep new rows in memory only.
    """

    def __init__(self, root: str, *, read_only: bool = False) -> None:
        self.url = root
        """Path or URL of the table store, as it was given."""
        self._fs, self._root = filesystem(root)
        self._read_only = read_only
        self.arrays = MappedArrays()
        """Files of the indexes, and of what has been looked up in them."""
        self._reader = SegmentReader()
        self._recipes: dict[tuple[Stage, str], _Recipe] = {}
        self._notes: dict[str, SegmentNote] = {}
        self._lock = Lock()

    def find(self, stage: Stage, recipe: str, keys: Digests) -> Places:
        """Look up results by their keys, and return their locations.

        Args:
            recipe: Everything but the input tables that determines the results.
        """
        with self._lock:
            found = self._known(stage, recipe)
            placed = found.keys.find(keys)
        self._verify(found, placed)
        is_damaged = np.array([segment.path in found.damaged for segment in placed.segments], np.bool_)
        if is_damaged.any():
            lost = ~placed.missing
            lost[lost] = is_damaged[placed.segment[lost]]
            placed = placed.fill(lost, Places.nothing(int(lost.sum())))
        return placed.looked_up()

    def append(self, stage: Stage, recipe: str | None, rows: StageRows, keys: Digests, usage: StageUsage) -> Places:
        """Store the results of samples as a segment, and return their locations.

        A result with a failed answer is not found later.

        Args:
            recipe: Everything but the input tables that determined the results; None for results that are never found.
            usage: Cost of computing all of them.

        Raises:
            AssayError: The segment cannot be written.
            ValueError: A column of the schema is missing, or has a null where the schema allows none.
        """
        conformed, complete = conform(rows.table, SCHEMAS[stage]), ~rows.find_failed(stage)
        start, count = rows.bounds[:-1].astype(np.int32), np.diff(rows.bounds).astype(np.int32)
        note = SegmentNote(
            recipe=recipe or "",
            schema_version=int(conformed.schema.metadata[b"assay.version"]),
            samples=len(rows),
            usage=cached_usage(usage),
        )
        folder = recipe_folder(self._root, stage, recipe)
        if self._read_only:
            path = f"{_NOT_STORED}{posixpath.join(folder, new_stem(time.time_ns()))}"
            self._reader.pin(Segment(path), conformed)
        else:
            location = posixpath.join(folder, next_stem(self._fs, folder))
            path = self._url(location + DATA)
            index = SegmentIndex(note, keys[complete], rows.digests[complete], start[complete], count[complete])
            note = write_segment(self._fs, location, conformed, index, is_found=recipe is not None)
        placed = Places((Segment(path),), np.zeros(len(rows), np.int32), start, count, rows.digests)
        self._notes[path] = note
        if recipe is not None:
            with self._lock:
                known = self._known(stage, recipe)
                known.trusted.add(path)
                known.keys.add(keys[complete], placed.select(complete))
        return placed

    def read(self, stage: Stage, placed: Places, columns: Sequence[str] | None = None) -> pa.Table:
        """Return rows, in the order of their samples.

        Args:
            placed: Locations of the rows; none may be missing.
            columns: Columns to read; None for all of the schema.

        Raises:
            AssayError: A segment is missing, damaged, unreachable, or of another schema version.
        """
        return self._reader.read(stage, placed, columns)

    def read_shards(
        self, stage: Stage, shards: Sequence[Places], columns: Sequence[str] | None = None
    ) -> Iterator[StageRows]:
        """Yield the results of shards as `read_rows` returns them. Each segment is read once, in any order of the rows.

        Args:
            columns: Columns to read; None for all of the schema.
        """
        for placed, table in zip(shards, self._reader.read_shards(stage, shards, columns), strict=True):
            yield StageRows(table, bounds_from(placed.count), placed.digests)

    def read_rows(self, stage: Stage, placed: Places) -> StageRows:
        """Return results, in the order of their samples.

        Args:
            placed: Locations of the results; none may be missing.

        Raises:
            AssayError: A segment is missing, damaged, unreachable, or of another schema version.
        """
        return StageRows(self.read(stage, placed), bounds_from(placed.count), placed.digests)

    def release(self) -> None:
        """Free the memory of what has been read; indexes and rows are read again when they are needed."""
        with self._lock:
            self._recipes.clear()
        self._reader.release()
        self.arrays.rest()

    def usage_of(self, parts: Iterable[Places]) -> StageUsage:
        """Return the cost of results that were found: nothing but questions whose answers are cached.

        Args:
            parts: Locations of the rows. Segments without an index, such as those of run folders, cost nothing, nor do
                missing rows.
        """
        taken = Counter[Segment]()
        for placed in parts:
            counts = np.bincount(placed.segment[~placed.missing], minlength=len(placed.segments))
            taken.update(dict(zip(placed.segments, counts.tolist(), strict=True)))
        usage = StageUsage()
        for segment, samples in taken.items():
            if samples and (note := self._note_of(segment)) is not None:
                usage += share_of(note.usage, samples / note.samples)
        return usage

    def _note_of(self, segment: Segment) -> SegmentNote | None:
        """Return the metadata of a segment, read first if another process has written it; None if it has no index."""
        path = segment.path
        if path not in self._notes:
            try:
                index = decode_index(self._fs.cat_file(self._location(path).removesuffix(DATA) + INDEX))
            except storage_errors(pa.ArrowException, ValueError):
                return None
            self._notes[path] = index.note
        return self._notes[path]

    def _known(self, stage: Stage, recipe: str) -> _Recipe:
        """Return what is known about the rows of a recipe; its indexes are read the first time."""
        key = (stage, recipe)
        if key not in self._recipes:
            self._recipes[key] = self._load(stage, recipe)
        return self._recipes[key]

    def _load(self, stage: Stage, recipe: str) -> _Recipe:
        folder, known = recipe_folder(self._root, stage, recipe), _Recipe(KeyIndex(self.arrays))
        problems: list[str] = []
        try:
            known.keys.add_all(self._read_indexes(stage, recipe, known, read_folder(self._fs, folder, problems)))
        except storage_errors() as error:
            _logger.warning("the rows in %s cannot be looked up (%s); they are recomputed", folder, error)
            return _Recipe(KeyIndex(self.arrays))
        _warn(problems)
        return known

    def _read_indexes(
        self, stage: Stage, recipe: str, known: _Recipe, segments: Iterable[StoredSegment]
    ) -> Iterator[tuple[Digests, Places]]:
        """Yield the keys and locations in the segments of a recipe, whose folder may be that of several, and note them.

        Args:
            known: The rows of the recipe, to which their segments are added.
        """
        for segment in segments:
            note = segment.index.note
            if note.recipe == recipe and SCHEMAS[stage].can_read(str(note.schema_version)):
                path = self._url(segment.location + DATA)
                self._notes[path], known.states[path] = note, segment.state
                yield segment.index.keys, _places(Segment(path), segment.index)

    def _verify(self, known: _Recipe, placed: Places) -> None:
        """Compare the files of segments with their digests, and record that they are used."""
        seen = known.trusted | known.damaged
        paths = [segment.path for segment in placed.segments if segment.path not in seen]
        problems = []
        for batch in self._batches([path for path in paths if _verified.get(path) != known.states[path]]):
            locations = [self._location(path) for path in batch]
            for path, content in zip(batch, self._fs.cat_ranges(locations, None, None), strict=True):
                if isinstance(content, Exception):
                    problem = str(content) or type(content).__name__
                elif digest_file(content) != self._notes[path].file_digest:
                    problem = "it has been changed since it was written"
                else:
                    continue
                known.damaged.add(path)
                problems.append(f"{path} ({problem})")
        _warn(problems)
        for path in paths:
            if path not in known.damaged:
                known.trusted.add(path)
                _verified[path] = known.states[path] if self._read_only else self._touch(path, known.states[path])

    def _touch(self, path: str, state: str) -> str:
        """Record that a segment is used, and return the new state of its file."""
        if not is_local(self._fs):
            return state
        location = self._location(path)
        touch(self._fs, location.removesuffix(DATA) + INDEX)
        touch(self._fs, location)
        try:
            return file_state(self._fs.info(location))
        except FileNotFoundError:
            return state

    def _batches(self, paths: Iterable[str]) -> Iterator[list[str]]:
        """Yield the paths of segments in batches of limited size."""
        batch: list[str] = []
        size = 0
        for path in paths:
            if batch and size + self._notes[path].size > VERIFIED_BYTES:
                yield batch
                batch, size = [], 0
            batch.append(path)
            size += self._notes[path].size
        if batch:
            yield batch

    def _url(self, location: str) -> str:
        return location if is_local(self._fs) else str(self._fs.unstrip_protocol(location))

    def _location(self, url: str) -> str:
        return str(strip_protocol(url))


def _places(segment: Segment, index: SegmentIndex) -> Places:
    return Places((segment,), np.zeros(len(index.keys), np.int32), index.start, index.count, index.digests)


def _warn(problems: Sequence[str]) -> None:
    if problems:
        _logger.warning("stored rows are damaged, and are recomputed: %s", "; ".join(problems))
