"""Find the modules that a module reaches by imports, from their source code.

What counts is the code that this process has loaded. A file that has changed since is not read: it is no longer known
what is computed, or whether it was loaded before the change.
"""

import hashlib
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path

from tasks.runtime.loaded_files import PACKAGES, FileState, file_state

_IMPORT = re.compile(rb"\n *from (metric_core[\w.]*|tasks[\w.]*) import (\([^)]*\)|.*)")
"""An import at any depth: one in a function, or for type checkers, tells of code that may run, too."""

_WORD = re.compile(rb"\w+")

REGISTRY, METRICS = "metric_core.metrics.registry", "metric_core.metrics."
"""The module that imports all metrics, and how the names of their modules begin."""


class ChangedCodeError(Exception):
    """A file has changed since this process has loaded the project; the message names it."""


class ModuleGraph:
    """The modules of `metric_core` and `tasks`, and which others each of them imports.

    The metrics that the registry imports are left out: a stage computes only those that its settings name. A file is
    read once, when it is needed.

    Args:
        root: Folder of both packages.
        loaded: State that the files must still have when they are read, by path; None to read them as they are.
    """

    def __init__(self, root: Path, loaded: Mapping[str, FileState] | None = None) -> None:
        self._root = root
        self._loaded = loaded
        self._contents: dict[str, tuple[str, Sequence[str]]] = {}
        self._reached: dict[str, frozenset[str]] = {}

    @cached_property
    def files(self) -> dict[str, str]:
        """Name of each module -> path of its file."""
        files = {}
        for package in PACKAGES:
            for folder, _, names in os.walk(self._root / package):
                inside = os.path.relpath(folder, self._root).replace(os.sep, ".")
                for name in names:
                    if name.endswith(".py"):
                        module = f"{inside}.{name}".removesuffix(".py").removesuffix(".__init__")
                        files[module] = f"{folder}{os.sep}{name}"
        return files

    def reach(self, module: str) -> frozenset[str]:
        """Return a module and all that it imports, directly or not, with the packages that these lie in.

        Raises:
            KeyError: The module has no file.
            ChangedCodeError: A file has changed since it was loaded.
        """
        if module not in self._reached:
            reached: set[str] = set()
            pending = [module]
            while pending:
                each = pending.pop()
                if each not in reached:
                    reached.add(each)
                    pending += self._read(each)[1]
            self._reached[module] = frozenset(reached)
        return self._reached[module]

    def digest(self, module: str) -> str:
        """Return the digest of the source code of a module.

        Raises:
            KeyError: The module has no file.
            ChangedCodeError: Its file has changed since it was loaded.
        """
        return self._read(module)[0]

    def _read(self, module: str) -> tuple[str, Sequence[str]]:
        """Return the digest of a module, and the modules that it imports with the package that it lies in."""
        if module not in self._contents:
            source = self._read_loaded(self.files[module])
            self._contents[module] = hashlib.sha256(source).hexdigest(), tuple(self._find_imports(module, source))
        return self._contents[module]

    def _read_loaded(self, path: str) -> bytes:
        try:
            source = Path(path).read_bytes()
            is_loaded = self._loaded is None or self._loaded.get(path) == file_state(path)
        except OSError as error:
            raise ChangedCodeError(path) from error
        if not is_loaded:
            raise ChangedCodeError(path)
        return source

    def _find_imports(self, module: str, source: bytes) -> Iterator[str]:
        package = module.rpartition(".")[0]
        if package:
            yield package
        for origin, names in _IMPORT.findall(b"\n" + source):
            for each in (origin, *(origin + b"." + word for word in _WORD.findall(names))):
                name = each.decode()
                if name in self.files and not (module == REGISTRY and name.startswith(METRICS)):
                    yield name
