"""A process that starts quickly: pandas is imported only when something needs it, and imports are not scanned."""

import gc
import platform
import subprocess
import sys

import pytest

from tasks.runtime.start_up import gc_paused, working_meanwhile
from tests.waiting import wait_until

_WITHOUT_PANDAS = """
import sys
from tasks.runtime.start_up import defer_pandas
defer_pandas()
defer_pandas()
import pyarrow as pa
assert pa.array(["a", None]).null_count == 1
assert pa.Table.from_pylist([{"a": 1}]).num_rows == 1
assert "pandas" not in sys.modules, "pyarrow imported pandas"
import pandas
nan = float("nan")
assert pandas.__spec__.name == "pandas"
assert pa.array(pandas.Series([1.0, nan])).null_count == 1, "pyarrow does not know a series"
assert pa.table({"a": pandas.Series([1.0, nan])})["a"].null_count == 1
assert list(pa.table({"a": [1]}).to_pandas()["a"]) == [1]
"""


_RENAMED = """
import sys
import pyarrow as pa
from tasks.runtime.start_up import defer_pandas
before, library = [*sys.meta_path], pa.lib
pa.lib = object()
defer_pandas()
assert sys.meta_path == before
pa.lib = library
import pandas
assert pa.array(pandas.Series([1.0, float("nan")])).null_count == 1, "pyarrow does not know a series"
"""


@pytest.mark.parametrize("program", [_WITHOUT_PANDAS, _RENAMED], ids=["deferred", "without the private part"])
def test_pyarrow_knows_pandas_once_something_imports_it(program: str) -> None:
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


_LIBRARIES = """
import os, sys
from rag_assay.__main__ import main
sys.argv = ["assay", "run", "--help"]
try:
    main()
except SystemExit:
    pass
import numpy
import pyarrow as pa
from threadpoolctl import threadpool_info
counts = [library["num_threads"] for library in threadpool_info() if library["user_api"] == "blas"]
print("threads per BLAS:", counts)
print("pool:", pa.default_memory_pool().backend_name, os.environ.get("ARROW_DEFAULT_MEMORY_POOL"))
"""


def test_a_run_has_one_thread_per_matrix_product_and_allocates_with_jemalloc(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MALLOC_ARENA_MAX", "ARROW_DEFAULT_MEMORY_POOL"):
        monkeypatch.delenv(name, raising=False)
    done = subprocess.run([sys.executable, "-c", _LIBRARIES], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    threads, pool = done.stdout.splitlines()[-2:]
    assert threads == "threads per BLAS: [1]"
    if platform.libc_ver()[0] == "glibc":  # the allocator is chosen where that is the C library
        assert pool == "pool: jemalloc jemalloc"


def test_garbage_is_collected_again_after_the_imports() -> None:
    was = gc.isenabled()
    gc.enable()
    try:
        with gc_paused():
            assert not gc.isenabled()
            with gc_paused():
                assert not gc.isenabled()
            assert not gc.isenabled()
        assert gc.isenabled()
    finally:
        if not was:
            gc.disable()


def test_work_is_done_while_a_block_waits() -> None:
    done: list[str] = []

    def fail() -> None:
        raise ModuleNotFoundError("no such module")

    with working_meanwhile(lambda: done.append("too late"), after=60.0):
        pass
    with working_meanwhile(fail, lambda: done.append("in time"), after=0.0):
        wait_until(lambda: bool(done))
    assert done == ["in time"]


_HEAPS = """
import ctypes, threading
from tasks.runtime.start_up import tune_process
tune_process()
ready, done = threading.Barrier(9), threading.Event()
def fill():
    blocks = [bytearray(1000) for _ in range(100)]
    ready.wait()
    done.wait()
threads = [threading.Thread(target=fill) for _ in range(8)]
for thread in threads: thread.start()
ready.wait()
libc = ctypes.CDLL(None)
libc.fdopen.restype = ctypes.c_void_p
libc.malloc_info(0, ctypes.c_void_p(libc.fdopen(1, b"w")))
done.set()
libc.fflush(None)
"""


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="only glibc has a heap per thread")
def test_threads_share_two_heaps(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("MALLOC_ARENA_MAX", raising=False)
    done = subprocess.run([sys.executable, "-c", _HEAPS], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("<heap nr=") == 2  # the second one is shared by the threads
