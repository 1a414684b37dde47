"""Bind the names `deployments`, `flows`, `metric_core` and `tasks` to the packages of rag-assay.

These names are common: a user's `tasks.py` or `flows/` that comes earlier on the import path would be imported in their
place. `open_packages` binds them to the packages that belong to this file, wherever the user's are.

A process has one module per name. If the user's program has a module of the same name, both share one module object: it
holds the user's names, and its `__path__` leads to the submodules of both. So `from tasks import send_mail` still finds
the user's function, and `from tasks.stages import claims` finds rag-assay's module.
"""

import importlib.util
import pkgutil
import sys
from collections.abc import Iterable, Sequence
from importlib.machinery import ModuleSpec, PathFinder
from pathlib import Path
from threading import RLock
from types import ModuleType
from typing import Any

NAMES = ("metric_core", "tasks", "flows", "deployments")
"""Names of the packages, lower ones first."""

_UNSHARED = "metric_core"
"""The package whose own code imports submodules as attributes, and which can therefore not be shared."""

_lock = RLock()
_opened = False


def open_packages(*, alone: bool = False) -> None:
    """Bind the names of the packages; calling it again costs nothing.

    Args:
        alone: True in processes that rag-assay starts: a module of the user that has the name of one of rag-assay's is
            hidden instead of refused.

    Raises:
        ImportError: The packages are not installed, or a module of the user is in the way; the message says which.
    """
    global _opened  # noqa: PLW0603 a process has one set of modules
    if _opened:
        return
    with _lock:
        root = _find_root()
        for name in NAMES:
            _open(name, root / name, alone)
        _opened = True


def _find_root() -> Path:
    """Return the folder of the packages: `site-packages`, or the repository of an editable installation."""
    above = Path(__file__).resolve().parents
    for folder in above:
        if all((folder / name / "__init__.py").is_file() for name in NAMES):
            return folder
    raise ImportError(
        f"the packages {', '.join(NAMES)} of rag-assay are not beside {above[0]}; "
        "install it again: pip install --force-reinstall --no-deps rag-assay"
    )


def _open(name: str, folder: Path, alone: bool) -> None:
    present = sys.modules.get(name)
    if present is None:
        _load(name, folder, _find_other(name, folder), alone)
    elif not _is_ours(present, folder):
        _refuse_conflicts(name, folder, present.__name__, _file_of(present), getattr(present, "__path__", ()))
        _share(present, folder, theirs=getattr(present, "__path__", ()))


def _load(name: str, folder: Path, other: ModuleSpec | None, alone: bool) -> None:
    """Import a package of rag-assay, and leave a way to the user's module of the same name."""
    theirs: Sequence[str] = ()
    if other is not None:
        theirs = list(other.submodule_search_locations or ())
        try:
            _refuse_conflicts(name, folder, name, str(other.origin), theirs)
        except ImportError:
            if not alone:
                raise
            other = None
    spec = importlib.util.spec_from_file_location(
        name, folder / "__init__.py", submodule_search_locations=[str(folder)]
    )
    assert spec is not None  # noqa: S101 the file is there, and is Python
    assert spec.loader is not None  # noqa: S101
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    if other is not None:
        _share(module, folder, theirs=theirs, unread=other)


def _find_other(name: str, folder: Path) -> ModuleSpec | None:
    """Return the module that a plain import would find in place of rag-assay's; None if there is none."""
    spec = PathFinder.find_spec(name)
    if spec is None or spec.loader is None or spec.origin is None:
        return None  # a folder without __init__.py does not come before a package
    return None if Path(spec.origin).resolve() == (folder / "__init__.py").resolve() else spec


def _is_ours(module: ModuleType, folder: Path) -> bool:
    return any(Path(each).resolve() == folder.resolve() for each in getattr(module, "__path__", ()))


def _file_of(module: ModuleType) -> str:
    return str(getattr(module, "__file__", None) or module)


def _refuse_conflicts(name: str, folder: Path, imported: str, file: str, theirs: Iterable[str]) -> None:
    """Raise an error if the user's module cannot share its name with the package."""
    advice = (
        "Rename it; or evaluate in a separate process, where it is not in the way: the command `assay run`, or "
        "`python -m rag_assay run`."
    )
    if name == _UNSHARED:
        raise ImportError(f"{file} is in the way: rag-assay has a package {name} too. {advice}", name=imported)
    ours = {module.name for module in pkgutil.iter_modules([str(folder)])}
    same = sorted(module.name for module in pkgutil.iter_modules(list(theirs)) if module.name in ours)
    if same:
        listed = " and ".join(f"{name}.{each}" for each in same)
        raise ImportError(
            f"the package {Path(file).parent} is in the way: it has {listed}, and so does rag-assay. {advice}",
            name=imported,
        )


def _share(module: ModuleType, folder: Path, *, theirs: Iterable[str], unread: ModuleSpec | None = None) -> None:
    """Let a module serve as the user's module and as the package of rag-assay.

    Args:
        module: Module that is in `sys.modules`.
        theirs: Folders of the user's package; empty if it is a file.
        unread: User's module, if it has not been imported yet.
    """
    shared = type("SharedModule", (_SharedModule, type(module)), {"__module__": __name__})
    module.__path__ = [*theirs, *(each for each in [str(folder)] if each not in theirs)]
    vars(module)["__assay_unread__"] = unread
    vars(module)["__assay_folder__"] = str(folder)
    module.__class__ = shared


class _SharedModule(ModuleType):
    """A module with the user's names and the submodules of both."""

    def __getattr__(self, name: str) -> Any:
        """Execute the user's module when a name that rag-assay does not have is first read."""
        unread: ModuleSpec | None = vars(self)["__assay_unread__"]
        is_name_of_module = name.startswith("__") or unread is None
        if is_name_of_module or any(part.name == name for part in pkgutil.iter_modules(self.__path__)):
            raise AttributeError(f"module {self.__name__!r} has no attribute {name!r}")
        assert unread is not None  # noqa: S101
        assert unread.loader is not None  # noqa: S101 `_find_other` saw it
        vars(self)["__assay_unread__"] = None
        vars(self).update(__file__=unread.origin, __spec__=_spec_with_path(unread, self.__path__))
        try:
            unread.loader.exec_module(self)
        except BaseException:
            vars(self)["__assay_unread__"] = unread
            raise
        return getattr(self, name)

    def __setattr__(self, name: str, value: Any) -> None:
        """Keep a name of the user's module when a submodule of rag-assay is imported that has the same name."""
        folder = vars(self).get("__assay_folder__")
        if name in vars(self) and isinstance(value, ModuleType) and folder is not None:
            file = getattr(value, "__file__", None)
            is_ours = file is not None and Path(folder) in Path(file).parents
            if is_ours and vars(self)[name] is not value:
                return
        super().__setattr__(name, value)


def _spec_with_path(spec: ModuleSpec, path: Sequence[str]) -> ModuleSpec:
    whole = ModuleSpec(spec.name, spec.loader, origin=spec.origin, is_package=True)
    whole.submodule_search_locations = list(path)
    whole.has_location = spec.has_location
    return whole
