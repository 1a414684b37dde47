"""Several processes with one cache: nothing is lost or locks up, and an overlap is asked about once."""

import json
import multiprocessing
import os
import signal
import threading
from pathlib import Path

from tasks.cache import leases
from tasks.cache.answer_cache import AnswerCache
from tasks.cache.cached_judge import CachedJudge
from tests.tasks.cache.helpers import CountingJudge, numbered_questions
from tests.waiting import DEAD_SECONDS, wait_until

PROCESSES = multiprocessing.get_context("spawn")


def judge_some(url: str, log: Path, first: int, last: int, seconds: float) -> None:
    """Judge numbered questions in portions, and write the labels to a file."""
    stored = CachedJudge(CountingJudge(log, seconds), AnswerCache(url))
    labels = []
    for start in range(first, last, 100):
        labels += [answer.label for answer in stored.choose(numbered_questions(start, min(start + 100, last)))]
    log.with_name(f"labels-{first}-{last}").write_text(json.dumps(labels), encoding="utf-8")


def test_four_processes_ask_an_overlap_once(url: str, tmp_path: Path) -> None:
    log = tmp_path / "asked"
    ranges = [(0, 600), (200, 800), (400, 1000), (0, 1000)]
    workers = [PROCESSES.Process(target=judge_some, args=(url, log, *some, 0.001)) for some in ranges]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert [worker.exitcode for worker in workers] == [0] * 4
    for first, last in ranges:
        labels = json.loads(log.with_name(f"labels-{first}-{last}").read_text(encoding="utf-8"))
        assert labels == ["yes"] * (last - first)
    asked = CountingJudge(log).asked
    assert len(asked) == len(set(asked)) == 1000
    again = CachedJudge(CountingJudge(log), AnswerCache(url)).choose(numbered_questions(0, 1000))
    assert all(answer.stored for answer in again)


def judge_until_killed(url: str, log: Path) -> None:
    """Judge slowly, with leases that end soon after the process dies."""
    leases.LEASE_SECONDS = 3.0
    judge_some(url, log, 0, 100, 0.02)


def test_a_killed_process_loses_little(url: str, tmp_path: Path) -> None:
    log = tmp_path / "asked"
    worker = PROCESSES.Process(target=judge_until_killed, args=(url, log))
    worker.start()
    wait_until(lambda: len(CountingJudge(log).asked) >= 50)
    os.kill(worker.pid or 0, signal.SIGKILL)
    worker.join()
    before = len(CountingJudge(log).asked)
    # The leases of the dead process hold for some seconds; then the rest is asked.
    answers = CachedJudge(CountingJudge(log), AnswerCache(url)).choose(numbered_questions(0, 100))
    found = sum(answer.stored for answer in answers)
    assert len(answers) == 100
    assert 10 <= found <= before < 100
    assert len(CountingJudge(log).asked) == before + 100 - found


def fork_and_judge(url: str, log: Path) -> None:
    """Judge, fork while another thread is opening the database, and judge in the child too."""
    cache = AnswerCache(url)
    stored = CachedJudge(CountingJudge(log), cache)
    stored.choose(numbered_questions(0, 10))
    child = multiprocessing.get_context("fork").Process(target=stored.choose, args=(numbered_questions(5, 15),))
    opening = vars(cache.database)["_opening"]
    held, forked = threading.Event(), threading.Event()

    def open_slowly() -> None:
        with opening:
            held.set()
            forked.wait()

    thread = threading.Thread(target=open_slowly)
    thread.start()
    held.wait()
    child.start()
    forked.set()
    thread.join()
    child.join(DEAD_SECONDS)
    child.kill()
    assert child.exitcode == 0
    assert [answer.stored for answer in stored.choose(numbered_questions(0, 20))] == [True] * 15 + [False] * 5


def test_a_forked_process_opens_its_own_connections(url: str, tmp_path: Path) -> None:
    log = tmp_path / "asked"
    # In a separate process: threads of Prefect that other tests left in this one do not survive a fork.
    parent = PROCESSES.Process(target=fork_and_judge, args=(url, log))
    parent.start()
    parent.join()
    assert parent.exitcode == 0
    assert len(CountingJudge(log).asked) == 20
