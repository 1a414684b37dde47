"""Start a process quickly and small: no scan for garbage among imports, pandas only if used, few heaps of memory."""

import atexit
import ctypes
import gc
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from importlib.util import find_spec
from threading import Timer
from types import ModuleType

_PANDAS = "pandas"

_M_ARENA_MAX, _ARENAS = -8, 2
"""Parameter of glibc's `mallopt`, and its value: Python threads take turns, so that more heaps only leave more gaps."""


def tune_process() -> None:
    """Set up the process of a command; call it before numpy and pyarrow are imported, which read the environment then.

    Matrix products get one thread, unless the user has set a number: stages run at the same time, and the other threads
    would spin while they wait for work. Garbage is collected less often, and not at exit: models, modules and tables
    live until the end of a run.
    """
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    _limit_heaps()
    gc.set_threshold(100_000, 50, 1000)
    atexit.register(gc.freeze)


@contextmanager
def gc_paused() -> Iterator[None]:
    """Import modules in the block without collecting garbage.

    Nearly all that imports create lasts: scanning it takes a sixth of the CPU time of importing Prefect.
    """
    if not gc.isenabled():
        yield
        return
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        gc.enable()


@contextmanager
def working_meanwhile(*steps: Callable[[], object], after: float = 1.0) -> Iterator[None]:
    """Do work in a thread while the block waits for others, so that nothing waits for it after the block.

    Args:
        steps: Work to do, in order, such as an import; errors are ignored: they occur again when the work is repeated.
        after: Delay in seconds from the start of the block, during which the block has other work; a shorter block
            starts nothing.
    """

    def do() -> None:
        for step in steps:
            with suppress(Exception):
                step()

    timer = Timer(after, do)
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()


def defer_pandas() -> None:
    """Keep pyarrow from importing pandas until something else does.

    The first conversion of a list by pyarrow imports pandas, 0.3 s of CPU time, to ask whether the list is a series.
    Once pandas is imported, pyarrow knows its types again, so series and data frames are converted as always.
    No public call of pyarrow looks for pandas again: without the private one, pyarrow imports pandas as it always does.
    """
    if _PANDAS in sys.modules:
        return
    import pyarrow as pa  # noqa: PLC0415 most verbs work without

    look_again = getattr(getattr(pa.lib, "_pandas_api", None), "data_frame", None)
    if look_again is None:
        return
    finder = _PandasFinder(look_again)
    sys.meta_path.insert(0, finder)
    pa.array([])  # pyarrow looks for pandas now, and does not find it
    finder.is_hidden = False


def _limit_heaps() -> None:
    """Let all threads of the process share two heaps, where the C library is glibc; elsewhere do nothing.

    By default it has eight per processor. What threads free in one cannot be used in another, so that a run with eleven
    metrics took a third more memory. Arrow allocates with jemalloc there, unless another allocator was chosen: its
    default took a tenth more.
    """
    if sys.platform != "linux" or "MALLOC_ARENA_MAX" in os.environ:
        return
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is not None:
        os.environ.setdefault("ARROW_DEFAULT_MEMORY_POOL", "jemalloc")
        mallopt(_M_ARENA_MAX, _ARENAS)


class _PandasFinder(MetaPathFinder):
    """A finder that hides pandas from pyarrow, and notifies pyarrow when pandas is imported later.

    Args:
        look_again: Function that makes a data frame for pyarrow, which then looks for pandas.
    """

    def __init__(self, look_again: Callable[[dict[str, object]], object]) -> None:
        self.is_hidden = True
        self._look_again = look_again

    def find_spec(
        self, fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Return the specification of pandas, whose import pyarrow notices; None for every other module."""
        del path, target
        if fullname != _PANDAS:
            return None
        if self.is_hidden:
            raise ModuleNotFoundError("pandas is imported later", name=_PANDAS)
        if self in sys.meta_path:
            sys.meta_path.remove(self)
        found = find_spec(_PANDAS)
        if found is not None and found.loader is not None:
            found.loader = _NoticedLoader(found.loader, self._look_again)
        return found


class _NoticedLoader(Loader):
    """A loader of pandas after which pyarrow knows pandas.

    Args:
        look_again: See `_PandasFinder`.
    """

    def __init__(self, loader: Loader, look_again: Callable[[dict[str, object]], object]) -> None:
        self._loader = loader
        self._look_again = look_again

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        """Create the module."""
        return self._loader.create_module(spec)

    def exec_module(self, module: ModuleType) -> None:
        """Execute the module; then let pyarrow look for it again, which it does when it makes a data frame."""
        self._loader.exec_module(module)
        self._look_again({})
