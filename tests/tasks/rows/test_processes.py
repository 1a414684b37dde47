"""Threads and processes use one store at the same time, and a process that is killed leaves a whole store."""

import multiprocessing
import os
import signal
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from tasks.rows.row_store import RowStore
from tests.tasks.rows.row_results import append, find
from tests.waiting import wait_until

PROCESSES = multiprocessing.get_context("spawn")


def append_many(root: str, names: str, times: int) -> None:
    """Append the same rows again and again, with the number of the time as their text."""
    store = RowStore(root)
    for number in range(times):
        append(store, {name: [str(number)] * 100 for name in names})


def test_threads_share_a_store(tmp_path: Path) -> None:
    append(RowStore(str(tmp_path)), {"x": ["stored"]})
    store = RowStore(str(tmp_path))

    def work(name: str) -> dict[str, list[str]]:
        for number in range(20):
            append(store, {f"{name}{number}": [name]})
            assert find(store, [f"{name}{number}", "x"]) == {f"{name}{number}": [name], "x": ["stored"]}
        return find(store, [f"{name}{number}" for number in range(20)])

    with ThreadPoolExecutor(8) as threads:
        found = list(threads.map(work, "abcdefgh"))
    assert found == [{f"{name}{number}": [name] for number in range(20)} for name in "abcdefgh"]


def test_two_processes_append_at_the_same_time(tmp_path: Path) -> None:
    workers = [PROCESSES.Process(target=append_many, args=(str(tmp_path), names, 20)) for names in ("abx", "cdx")]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert [worker.exitcode for worker in workers] == [0, 0]
    assert find(RowStore(str(tmp_path)), list("abcdx")) == dict.fromkeys("abcdx", ["19"] * 100)
    assert len(list(tmp_path.rglob("*.index"))) == 40


def test_a_killed_process_leaves_a_whole_store(tmp_path: Path) -> None:
    worker = PROCESSES.Process(target=append_many, args=(str(tmp_path), "ab", 1_000_000))
    worker.start()
    wait_until(lambda: len(list(tmp_path.rglob("*.index"))) >= 20)
    os.kill(worker.pid or 0, signal.SIGKILL)
    worker.join()
    found = find(RowStore(str(tmp_path)), ["a", "b"])
    assert found["a"] == found["b"]
    assert int(found["a"][0]) >= 19
    append(RowStore(str(tmp_path)), {"a": ["after"]})
    assert find(RowStore(str(tmp_path)), ["a"]) == {"a": ["after"]}
