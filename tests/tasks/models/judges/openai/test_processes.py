"""Tests of judges in several processes: one that was forked opens its own, and workers share what is in flight."""

import multiprocessing

import pytest

from metric_core.prompts.judge_questions import ask_verdict
from tasks.models.judges.openai.openai_judge import OpenAIJudge
from tasks.opening.run_models import models_for
from tasks.options.judge_options import JudgeSettings
from tasks.options.judge_server_options import ServerJudgeOptions
from tasks.options.judged_settings import JudgedSettings
from tests.tasks.models.judges.openai.conftest import Serve
from tests.waiting import DEAD_SECONDS


def ask(url: str, answers: str, claim: str) -> None:
    """Ask as a stage does, for a run that is new to this process."""
    settings = JudgeSettings(backend="server", server=ServerJudgeOptions(urls=(url,)))
    judge = models_for(claim, f"{answers}-tables").select(JudgedSettings(judge=settings, cache=answers)).judge()
    assert judge.choose([ask_verdict(claim, "premise")])[0].label == "yes"


def ask_in_a_forked_process(url: str, answers: str, opened: OpenAIJudge) -> None:
    ask(url, answers, "the child's claim")
    with pytest.raises(RuntimeError, match="a forked process"):
        opened.choose([ask_verdict("claim", "premise")])
    opened.close()


def fork_and_ask(url: str, answers: str) -> None:
    """Ask, fork, ask in the child, and ask again."""
    opened = OpenAIJudge(ServerJudgeOptions(urls=(url,)))
    ask(url, answers, "claim")
    forked = multiprocessing.get_context("fork").Process(target=ask_in_a_forked_process, args=(url, answers, opened))
    forked.start()
    forked.join(DEAD_SECONDS)
    forked.kill()
    assert forked.exitcode == 0
    ask(url, answers, "another claim")
    assert opened.choose([ask_verdict("claim", "premise")])[0].label == "yes"


def test_a_forked_process_opens_its_own_connection(serve: Serve, tmp_path: object) -> None:
    server = serve()
    # From a separate process: threads that other tests left in this one do not survive a fork.
    parent = multiprocessing.get_context("spawn").Process(
        target=fork_and_ask, args=(server.url, f"{tmp_path}/answers.db")
    )
    parent.start()
    parent.join()
    assert parent.exitcode == 0
    assert len(server.asked) == 4


CONCURRENCY, WORKERS = 6, 2


def ask_as_one_of_two_workers(url: str, answers: str, worker: int) -> None:
    settings = JudgeSettings(backend="server", server=ServerJudgeOptions(urls=(url,), concurrency=CONCURRENCY))
    models = models_for("run", f"{answers}-tables")
    models.processes = WORKERS
    judge = models.select(JudgedSettings(judge=settings, cache=f"{answers}-{worker}")).judge()
    assert judge.choose([ask_verdict(f"claim {number}", f"premise {worker}") for number in range(40)])[-1].label


def test_two_workers_have_no_more_in_flight_than_one_process(serve: Serve, tmp_path: object) -> None:
    server = serve()
    server.delay = 0.05
    context = multiprocessing.get_context("spawn")
    workers = [
        context.Process(target=ask_as_one_of_two_workers, args=(server.url, f"{tmp_path}/answers.db", worker))
        for worker in range(WORKERS)
    ]
    for each in workers:
        each.start()
    for each in workers:
        each.join(DEAD_SECONDS)
        assert each.exitcode == 0
    assert CONCURRENCY / WORKERS < server.most_in_flight <= CONCURRENCY
