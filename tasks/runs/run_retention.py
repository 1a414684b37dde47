"""Remove the folders of old runs by a policy: keep the last runs of each deployment, and runs younger than an age.

A folder is removed only if its `run.json` says that it is a run folder. These always stay: accepted baselines, runs in
progress, and runs that started less than an hour ago.
"""

import json
import shutil
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

from filelock import FileLock, Timeout
from fsspec.core import url_to_fs

from metric_core.errors import AssayError
from tasks.record.record_files import read_header
from tasks.rows.table_files import storage_errors
from tasks.runs.run_folder import LOCK, MANIFEST
from tasks.runtime.atomic_files import translate_write_errors
from tasks.runtime.home import assay_home

YOUNGEST = timedelta(hours=1)
"""Runs that started within this time are never removed."""

_REMOVED = ".removed-"
"""Prefix of a folder that is being removed; one that a killed process left is removed next time."""


@dataclass(frozen=True, slots=True)
class RetentionPolicy:
    """A policy for run folders. A run is removed only if it is neither young enough nor among the last.

    Args:
        keep_last: Number of the latest runs to keep per deployment, or per source without one; None for no such rule.
        before: Keep runs that started after this time; None for no such rule.
    """

    keep_last: int | None = None
    before: datetime | None = None


@dataclass(frozen=True, slots=True)
class StoredRun:
    """A run folder.

    Args:
        path: Absolute path of the folder.
        started: Start time of the run.
        group: Name of its deployment, or its source without one.
    """

    path: Path
    started: datetime
    group: str

    @property
    def size(self) -> int:
        """The size of its files in bytes."""
        return sum(file.stat().st_size for file in self.path.rglob("*") if file.is_file())


def find_expired(root: Path, policy: RetentionPolicy, baselines: Collection[Path]) -> list[StoredRun]:
    """Return the run folders in a folder that a policy does not keep, oldest first.

    Args:
        root: Folder that contains the run folders.
        policy: Rules for the runs to keep; a policy without rules keeps all.
        baselines: Run folders that are kept in any case.
    """
    if policy.keep_last is None and policy.before is None:
        return []
    groups: dict[str, list[StoredRun]] = defaultdict(list)
    for run in _stored_runs(root):
        groups[run.group].append(run)
    kept = {path.resolve() for path in baselines}
    youngest = datetime.now(UTC) - YOUNGEST
    before = youngest if policy.before is None else min(policy.before, youngest)
    expired = []
    for runs in groups.values():
        runs.sort(key=lambda run: run.started, reverse=True)
        expired += [
            run
            for run in runs[policy.keep_last or 0 :]
            if run.started < before and run.path.resolve() not in kept and not _is_locked(run.path)
        ]
    return sorted(expired, key=lambda run: run.started)


def remove_runs(root: Path, runs: Iterable[StoredRun]) -> Iterator[StoredRun]:
    """Remove run folders, except those that a run has locked meanwhile, and yield the removed ones.

    Args:
        root: Folder that contains the run folders.

    Raises:
        AssayError: A folder cannot be removed.
    """
    for run in runs:
        removed = root / f"{_REMOVED}{run.path.name}"
        with translate_write_errors(f"the run folder {run.path}", advice="It is not removed."):
            try:
                with FileLock(run.path / LOCK).acquire(blocking=False):
                    run.path.rename(removed)  # at once, so that no half run can be found
            except (Timeout, FileNotFoundError):
                continue
            shutil.rmtree(removed)
        yield run
    for left in root.glob(f"{_REMOVED}*"):
        shutil.rmtree(left, ignore_errors=True)


def accepted_folders(root: str | None = None) -> frozenset[Path]:
    """Return the run folders of all accepted baselines in a store, of all indexes and deployments.

    Args:
        root: Folder or fsspec URL of the store; None means ASSAY_HOME/baselines.

    Raises:
        AssayError: The store cannot be read, or a record in it is damaged; then no run may be removed.
    """
    address = root or str(assay_home() / "baselines")
    try:
        fs, folder = url_to_fs(address)
        fs.invalidate_cache()
        if not fs.isdir(folder):
            return frozenset()
        # Copies of run folders lie deeper, and have fixed file names.
        records = [str(name) for name in fs.find(folder, maxdepth=3) if str(name).endswith(".json")]
        contents = [json.loads(fs.cat_file(name)) for name in records]
    except storage_errors(ValueError, ImportError) as error:
        raise AssayError(
            f"the baselines in {address} cannot be read ({type(error).__name__}), so it is not known which runs must "
            "be kept; none was removed. Correct or remove the damaged record, or name another store"
        ) from error
    return frozenset(
        Path(content["folder"]) for content in contents if isinstance(content, dict) and {"folder", "why"} <= {*content}
    )


def _stored_runs(root: Path) -> Iterator[StoredRun]:
    for file in sorted(root.glob(f"*/{MANIFEST}")):
        header = read_header(file)
        if header is None or file.parent.is_symlink() or header.created.tzinfo is None:
            continue
        deployment = "" if header.deployment is None else header.deployment.name
        yield StoredRun(file.parent.absolute(), header.created, deployment or str(header.source))


def _is_locked(folder: Path) -> bool:
    """Return whether a run is writing into a folder."""
    if not (folder / LOCK).exists():
        return False
    try:
        with FileLock(folder / LOCK).acquire(blocking=False):
            return False
    except Timeout:
        return True
    except OSError:
        return True
