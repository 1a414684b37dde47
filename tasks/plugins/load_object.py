"""Load a plugin object by name: `module:attribute`, or the name of an entry point of an installed package.

The object comes with a digest of its code, which is part of the cache key of everything it computes.
"""

import hashlib
import importlib
import inspect
import logging
import os
import secrets
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache
from importlib.metadata import EntryPoint
from pathlib import Path
from types import ModuleType
from typing import Any

from metric_core.errors import PluginError
from metric_core.parsing.installed_points import installed_points
from metric_core.parsing.suggestions import suggest_names
from tasks.runtime.loaded_files import STARTED

_LOADED: dict[str, float] = {}
"""Time when each module was loaded with an object, in seconds since 1970; others may have been loaded at any time."""

_logger = logging.getLogger(__name__)


class Group(StrEnum):
    """The groups of entry points, one per kind of plugin."""

    METRICS = "rag_assay.metrics"
    JUDGES = "rag_assay.judges"
    EMBEDDERS = "rag_assay.embedders"
    RECOGNIZERS = "rag_assay.recognizers"
    RETRIEVERS = "rag_assay.retrievers"
    REDACTORS = "rag_assay.redactors"
    RECIPIENTS = "rag_assay.recipients"
    READERS = "rag_assay.readers"
    VERBS = "rag_assay.verbs"
    VERB_FORMS = "rag_assay.verb_forms"
    FINDINGS = "rag_assay.findings"
    INDEX_CHECKS = "rag_assay.index_checks"
    REBUILD_GUARDS = "rag_assay.rebuild_guards"
    SINKS = "rag_assay.sinks"


@dataclass(frozen=True, slots=True)
class LoadedObject:
    """A plugin object.

    Args:
        name: Name that loads the object in any process.
        code: Digest of the source code of the object.
    """

    name: str
    obj: Any
    code: str


def installed_names(group: Group) -> dict[str, EntryPoint]:
    """Return the entry points of a group by name, without names that two packages define differently."""
    points: dict[str, list[EntryPoint]] = {}
    for point in installed_points(group):
        points.setdefault(point.name, []).append(point)
    return {name: found[0] for name, found in points.items() if len({point.value for point in found}) == 1}


@lru_cache(maxsize=256)
def load_object(group: Group, name: str) -> LoadedObject:
    """Load the object with a name.

    Args:
        group: Kind of plugin; a name without a colon is looked up among the entry points of the group.
        name: `module:attribute`, with dots for nested attributes, or the name of an entry point.

    Raises:
        PluginError: The object does not exist or cannot be imported.
    """
    point = None if ":" in name else _find_entry_point(group, name)
    module_name, _, attribute = (name if point is None else point.value.partition("[")[0].replace(" ", "")).partition(
        ":"
    )
    earlier = frozenset(sys.modules)
    module = _import_module(module_name, name)
    _LOADED.update(dict.fromkeys(sys.modules.keys() - earlier, time.time()))
    obj: Any = module
    for part in attribute.split("."):
        if not hasattr(obj, part):
            near = ", ".join(suggest_names(part, [known for known in dir(obj) if not known.startswith("_")]))
            meant = f" Did you mean {near}?" if near else ""
            raise PluginError(f"{name!r}: the module {module_name} has no attribute {attribute!r}.{meant}")
        obj = getattr(obj, part)
    version = None if point is None or point.dist is None else point.dist.version
    versions = (getattr(module, "__version__", None), version)
    sources = [_source(part) for part in _modules(module, obj)]
    return LoadedObject(name, obj, digest_with(f"{module_name}:{attribute}", versions, sources))


def digest_with(code: str, *more: object) -> str:
    """Return a digest of a code digest and further values.

    >>> digest_with("a", {"b": 1}) == digest_with("a", {"b": 1})
    True
    """
    return hashlib.sha256(repr((code, *more)).encode("utf-8", "surrogatepass")).hexdigest()


def _find_entry_point(group: Group, name: str) -> EntryPoint:
    points = installed_names(group)
    if name in points:
        return points[name]
    packages = [point.dist.name for point in installed_points(group) if point.name == name and point.dist]
    if packages:
        raise PluginError(f"{name!r} is an entry point of {' and of '.join(packages)}; name it by module:attribute")
    near = ", ".join(suggest_names(name, points))
    meant = f"Did you mean {near}?" if near else f"There are: {', '.join(points) or 'none'}."
    raise PluginError(
        f"no installed package has an entry point {name!r} in the group {group}. {meant} "
        "Name an object without an entry point by module:attribute."
    )


def _import_module(module: str, name: str) -> ModuleType:
    if not module or not all(part.isidentifier() for part in module.split(".")):
        raise PluginError(f"a custom object is named module:attribute, got {name!r}")
    _extend_import_path(module)
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        if error.name is None or not f"{module}.".startswith(f"{error.name}."):
            raise PluginError(f"{name!r}: importing {module} needs the module {error.name!r}; install it") from error
        raise PluginError(
            f"{name!r}: there is no module {error.name!r}. Install its package, run where its file is, or put its "
            "folder into PYTHONPATH (for a worker, in the worker's environment)"
        ) from error
    except (Exception, SystemExit) as error:  # a script that exits is not a module
        raise PluginError(f"{name!r}: importing {module} raises {type(error).__name__}: {error}") from error


def _extend_import_path(module: str) -> None:
    """Make a module in the working directory importable, as `python -m` does, without shadowing installed ones."""
    first, here = module.partition(".")[0], os.getcwd()  # noqa: PTH109 sys.path holds texts
    is_here = Path(here, f"{first}.py").is_file() or Path(here, first, "__init__.py").is_file()
    if is_here and here not in sys.path and "" not in sys.path:
        sys.path.append(here)
        importlib.invalidate_caches()


def _modules(module: ModuleType, obj: Any) -> list[ModuleType]:
    """Return the modules of the object, of its class or factory, and of the functions in its slots.

    Slots may hold tuples of objects with functions in their slots, such as the products of a metric.
    """
    parts = (obj, type(obj), *_members(obj))
    names = {module.__name__, *(getattr(part, "__module__", None) for part in parts)}
    external = sorted(name for name in names if isinstance(name, str) and not name.startswith("metric_core."))
    return [sys.modules[name] for name in external if name in sys.modules]


def _members(obj: Any) -> Iterator[Any]:
    for name in getattr(type(obj), "__slots__", ()):
        member = getattr(obj, name)
        yield member
        for item in member if isinstance(member, tuple) else ():
            yield item
            yield from _members(item)


def _source(module: ModuleType) -> tuple[str, str]:
    """Return the name of a module and the digest of its code; one like no other if nobody knows what was loaded."""
    file = inspect.getsourcefile(module) if getattr(module, "__file__", None) else None
    if file and Path(file).stat().st_mtime > _LOADED.get(module.__name__, STARTED):
        _logger.warning(
            "%s has changed since this process loaded it, so that what its objects compute is not taken from earlier "
            "runs, and not kept for later ones. Start the process again",
            file,
        )
        return module.__name__, secrets.token_hex(32)
    content = Path(file).read_bytes() if file else b""
    return module.__name__, hashlib.sha256(content).hexdigest()
