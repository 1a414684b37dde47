"""Find run folders below a folder."""

import os
from collections.abc import Iterable, Iterator
from pathlib import Path

from metric_core.errors import RunFolderError
from tasks.runs.run_folder import LOCK, MANIFEST, SCORES, STAGES, SUMMARY

_PARTS = frozenset({SUMMARY, SCORES, STAGES, LOCK})


def find_run_folders(roots: Iterable[Path]) -> Iterator[Path]:
    """Yield the run folders in folders and below them, each once, in order of their paths.

    A folder that holds parts of a run but no run.json counts too, so that it can be named. Run folders inside a run
    folder belong to that run, and are not yielded.

    Args:
        roots: Folders to search; a run folder may be one of them.

    Raises:
        RunFolderError: A folder does not exist or cannot be read.
    """
    seen: set[Path] = set()
    for root in roots:
        start = root.expanduser().absolute()
        if not start.is_dir():
            raise RunFolderError(f"there is no folder {start} to look for runs in; name the folder that holds them")
        for path, folders, files in os.walk(start, onerror=_refuse):
            folders.sort()
            names = {*folders, *files}
            if MANIFEST in names or len(names & _PARTS) > 1:
                folders.clear()
                real = Path(path).resolve()
                if real not in seen:
                    seen.add(real)
                    yield Path(path)


def _refuse(error: OSError) -> None:
    raise RunFolderError(f"{error.filename} cannot be searched for runs: {error.strerror}") from error
