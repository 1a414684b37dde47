"""Look at a rebuilt index before a version is evaluated: guards that packages bring may stop the run."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from flows.config.deploy_options import EventSettings
from metric_core.errors import PluginError
from tasks.options.source_options import DataOptions
from tasks.plugins.load_object import Group, installed_names, load_object
from tasks.record.findings import HasEntry


@dataclass(frozen=True, slots=True)
class AnnouncedIndex:
    """A version of an index that is to be evaluated.

    Args:
        chunks: Address of its chunks, or of their receipt.
        baseline: Run folder of the accepted version; None if there is none.
        data: Options of the run that say how its data are read.
        limits: Options that say which changes of an index stop the run.
    """

    chunks: str
    baseline: Path | None
    data: DataOptions
    limits: EventSettings


@dataclass(frozen=True, slots=True)
class PassedIndex:
    """The result of a guard for a version that may be evaluated.

    Args:
        entry: Entry of the record of its run.
        keep: Function that writes what the guard of the next version needs into the run folder.
    """

    entry: HasEntry
    keep: Callable[[Path], None]


def guard(index: AnnouncedIndex) -> list[PassedIndex]:
    """Let the installed guards look at a version, and return their results.

    Raises:
        AssayError: A guard stops the run, or cannot look at the index.
    """
    return [_load(name)(index) for name in sorted(installed_names(Group.REBUILD_GUARDS))] if index.chunks else []


def _load(name: str) -> Callable[[AnnouncedIndex], PassedIndex]:
    found: Callable[[AnnouncedIndex], PassedIndex] = load_object(Group.REBUILD_GUARDS, name).obj
    if not callable(found):
        raise PluginError(f"the guard {name} is {found!r}, wanted a function of an AnnouncedIndex")
    return found
