"""Store accepted baselines: the run that later runs are compared with, and its predecessors.

A store is a folder or an fsspec URL. Baselines of an index belong to a deployment: two deployments that evaluate the
same index with different judges or metrics never see each other's. Each acceptance is a separate file,
`INDEX/DEPLOYMENT/RUN.json`, which is written whole and never changed; the baseline is the newest version among them.
Therefore no lock is needed, and accepting an older version late changes nothing. A run that a person accepted is the
baseline even if its version is older: only acceptances that follow count then. At a URL the run folder is stored too,
as `INDEX/DEPLOYMENT/RUN/`, for machines that share no disk.

Evaluations that are about no index have baselines by their name, whatever started them: `NAME/evaluations/RUN.json`.
Their version is the time at which the run started, and the baseline is the run that was accepted last. Acceptances are
numbered, because a clock that was ahead once must not decide which is the last.
"""

import hashlib
import json
import posixpath
import re
import shutil
import uuid
from collections.abc import Sequence
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Literal
from urllib.parse import quote

from fsspec.core import url_to_fs
from pydantic import BaseModel, ValidationError

from metric_core.errors import AssayError, ConfigError
from tasks.rows.table_files import atomic_fs_write, storage_errors, translate_errors
from tasks.runs.index_versions import IndexVersion, newest
from tasks.runtime.home import assay_home

INDEX_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,127}")
"""Pattern of the id of an index, which becomes part of file names and of a resource's id."""

RETAINED = 20
"""Number of acceptances of an index that are retained."""

DEFAULT_DEPLOYMENT = "index-rebuilt"
"""The deployment of a run that was started without one."""

CLOCK_TOLERANCE = timedelta(hours=1)
"""Time by which the clocks of two machines may differ; what lies further ahead was written by a wrong clock."""

EVALUATIONS = "evaluations"
"""Stands for the deployment in baselines of evaluations that are about no index."""

_LONG_AGO = datetime.min.replace(tzinfo=UTC)
_LONGEST_FOLDER = 120
_SETTING = "deploy.baselines"


class Baseline(BaseModel, frozen=True, extra="forbid"):
    """An accepted run.

    Args:
        format: Format of this record.
        index: Id of the index, or name of an evaluation that is about none.
        version: Version of the index, as its builder names it, or the time at which the run started.
        announced: Time at which the version was announced, or the run started.
        folder: Run folder, on the machine that wrote it.
        dataset: Data that the run evaluated.
        accepted: Time of the acceptance.
        why: "first" for the first run, "passed" for a run that passed the gate, or "manual" for a run that a person
            accepted.
        deployment: Name of the deployment whose run it is.
        number: Number of the acceptance among those of the index: later ones have greater numbers.
    """

    format: Literal[1] = 1
    index: str
    version: str
    announced: datetime
    run_id: str
    folder: str
    dataset: str
    accepted: datetime
    why: Literal["first", "passed", "manual"]
    deployment: str = ""
    number: int = 0

    @property
    def place(self) -> IndexVersion:
        """The place of the run among the versions of the index."""
        return IndexVersion(self.version, self.announced)

    def is_ahead(self, now: datetime) -> bool:
        """Return whether the run lies in the future, so that a clock was wrong.

        Args:
            now: Time to compare with.
        """
        return self.announced > now + CLOCK_TOLERANCE

    def place_at(self, now: datetime) -> IndexVersion:
        """Return the place of the run as it counts at a time: an announcement in the future makes nothing newer."""
        return IndexVersion(self.version, _LONG_AGO) if self.is_ahead(now) else self.place


class Baselines:
    """A store of the baselines of a deployment.

    Args:
        root: Folder or fsspec URL; None means ASSAY_HOME/baselines.
        deployment: Name of the deployment; EVALUATIONS for evaluations that are about no index.

    Raises:
        ConfigError: No installed package supports the protocol of the URL.
    """

    def __init__(self, root: str | None = None, deployment: str = DEFAULT_DEPLOYMENT) -> None:
        self.root = root or str(assay_home() / "baselines")
        self.deployment = deployment
        try:
            self._fs, self._path = url_to_fs(self.root)
        except (ImportError, ValueError) as error:
            raise ConfigError(f"the store of baselines {self.root} cannot be opened: {error}") from error
        self._is_remote = "://" in self.root

    def current(self, index: str) -> Baseline | None:
        """Return the baseline of an index; None if it has none.

        Raises:
            AssayError: A record is damaged.
        """
        accepted = self.acceptances(index)
        if self.deployment == EVALUATIONS:
            return accepted[-1] if accepted else None
        manual = [number for number, baseline in enumerate(accepted) if baseline.why == "manual"]
        first = manual[-1] if manual else 0
        by_version = {
            baseline.place_at(min(later.accepted for later in accepted[number:])): baseline
            for number, baseline in enumerate(accepted)
            if number >= first
        }
        version = newest(by_version)
        return None if version is None else by_version[version]

    def acceptances(self, index: str) -> Sequence[Baseline]:
        """Return the retained acceptances of an index, oldest first."""
        self._fs.invalidate_cache()
        names = self._records(self._folder(index))
        return sorted((self._read(name) for name in names), key=lambda each: (each.number, each.accepted))

    def accept(self, baseline: Baseline) -> bool:
        """Make a run the baseline, unless a newer version of its index is, or another run if it would be the first.

        What a person accepts is the baseline in any case.

        Args:
            baseline: Run to accept; its folder must be on this machine.

        Returns:
            Whether the run is now the baseline.

        Raises:
            AssayError: The store cannot be written, or a record in it is damaged.
        """
        if baseline.why != "manual" and self.is_superseded(baseline):
            return False
        number = 1 + max((each.number for each in self.acceptances(baseline.index)), default=0)
        baseline = baseline.model_copy(update={"deployment": self.deployment, "number": number})
        folder = self._folder(baseline.index)
        if self._is_remote:
            with translate_errors(self._fs, folder, _SETTING):
                self._fs.makedirs(folder, exist_ok=True)
                self._fs.put(f"{baseline.folder.rstrip('/')}/", f"{folder}/{baseline.run_id}/", recursive=True)
        record = baseline.model_dump_json(indent=2).encode()
        atomic_fs_write(self._fs, f"{folder}/{baseline.run_id}.json", record, _SETTING, is_synced=True)
        self._delete_oldest(baseline.index)
        return baseline.why == "manual" or not self.is_superseded(baseline)

    def is_superseded(self, baseline: Baseline) -> bool:
        """Return whether a newer version of an index is its baseline, or another run for one that would be the first.

        A run about no index is never older than its baseline: each evaluates what the data are now.
        """
        current = self.current(baseline.index)
        if current is None or current.run_id == baseline.run_id:
            return False
        if self.deployment == EVALUATIONS:
            return baseline.why == "first"
        return current.place_at(baseline.accepted).is_newer_than(baseline.place)

    def run_folder(self, baseline: Baseline) -> Path:
        """Return the run folder of a baseline on this machine; fetch it once if it is at a URL.

        Raises:
            AssayError: The run folder does not exist or cannot be fetched.
        """
        local = Path(baseline.folder)
        if local.is_dir():
            return local
        advice = "Restore it, or accept another run with `assay accept RUN`."
        if not self._is_remote:
            raise AssayError(
                f"the run folder {local} of version {baseline.version}, the baseline of {baseline.index}, "
                f"does not exist. {advice} The record is {self._folder(baseline.index)}/{baseline.run_id}.json."
            )
        fetched = assay_home() / "fetched" / baseline.run_id
        if not fetched.is_dir():
            temporary = fetched.with_name(f"{fetched.name}.{uuid.uuid4().hex}")
            try:
                self._fs.get(f"{self._folder(baseline.index)}/{baseline.run_id}/", f"{temporary}/", recursive=True)
                temporary.rename(fetched)
            except storage_errors() as error:
                shutil.rmtree(temporary, ignore_errors=True)
                if not fetched.is_dir():  # another run may have fetched it meanwhile
                    raise AssayError(f"the baseline {baseline.run_id} cannot be fetched: {error}. {advice}") from error
        return fetched

    def _folder(self, index: str) -> str:
        key = folder_of_evaluation(index) if self.deployment == EVALUATIONS else check_index_name(index)
        return posixpath.join(self._path, key, quote(self.deployment, safe=" "))

    def _records(self, folder: str) -> list[str]:
        with translate_errors(self._fs, folder, _SETTING, "read"):
            if not self._fs.isdir(folder):
                return []
            found = self._fs.ls(folder, detail=True)
        return [each["name"] for each in found if each["type"] == "file" and each["name"].endswith(".json")]

    def _read(self, path: str) -> Baseline:
        try:
            content: Any = json.loads(self._fs.cat_file(path))
            return Baseline.model_validate(content)
        except storage_errors(ValueError, ValidationError) as error:
            raise AssayError(
                f"the record {path} of a baseline cannot be read ({type(error).__name__}). Remove it, or restore it."
            ) from error

    def _delete_oldest(self, index: str) -> None:
        """Delete the oldest acceptances beyond RETAINED, but never the baseline."""
        current = self.current(index)
        for baseline in self.acceptances(index)[:-RETAINED]:
            if current is not None and baseline.run_id != current.run_id:
                path = f"{self._folder(index)}/{baseline.run_id}"
                # Another process may be deleting it, too.
                with translate_errors(self._fs, path, _SETTING, "removed"), suppress(FileNotFoundError):
                    self._fs.rm(f"{path}.json")
                    if self._fs.isdir(path):
                        self._fs.rm(path, recursive=True)


def folder_of_evaluation(name: str) -> str:
    """Return the folder of an evaluation, whose name may have any characters and up to 200 of them.

    >>> folder_of_evaluation("support, nightly"), folder_of_evaluation(".."), len(folder_of_evaluation("ü" * 200))
    ('support%2C nightly', '%2E.', 120)
    """
    quoted = quote(name, safe=" ")
    quoted = f"%2E{quoted[1:]}" if quoted.startswith(".") else quoted
    if len(quoted) <= _LONGEST_FOLDER:
        return quoted
    digest = hashlib.sha256(name.encode()).hexdigest()[:16]
    return f"{quoted[: _LONGEST_FOLDER - len(digest) - 1]}-{digest}"


def check_index_name(index: str) -> str:
    """Check the id of an index and return it.

    Raises:
        ConfigError: The id contains a character that is not allowed, or is too long.

    >>> check_index_name("handbook.en")
    'handbook.en'
    """
    if INDEX_NAME.fullmatch(index) is None:
        raise ConfigError(
            "the id of an index must have at most 128 letters, digits, dots, hyphens and underscores and start with a "
            f"letter or digit, got {index!r}"
        )
    return index
