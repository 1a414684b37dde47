"""A process that was forked from one with a judge opens its own; that of its parent goes on."""

import multiprocessing

import pytest

from metric_core.judge_questions import ask_verdict
from tasks.judges.openai.openai_judge import OpenAIJudge
from tasks.models import models as resources
from tasks.options.judge_server_options import ServerJudgeOptions
from tasks.options.model_options import EmbedderSettings, JudgeSettings, LanguageSettings
from tests.tasks.judges.openai.conftest import Serve


def ask(url: str, answers: str, claim: str) -> None:
    """Asks as a stage does, of a run that this process has not heard of yet."""
    resources.reset_clients_for_run(claim)
    settings = JudgeSettings(backend="server", server=ServerJudgeOptions(urls=(url,)))
    judge = resources.open_judge(settings, EmbedderSettings(), LanguageSettings(), answers)
    assert judge.choose([ask_verdict(claim, "premise")])[0].label == "yes"


def ask_in_a_forked_process(url: str, answers: str, opened: OpenAIJudge) -> None:
    ask(url, answers, "the child's claim")
    with pytest.raises(RuntimeError, match="a forked process"):
        opened.choose([ask_verdict("claim", "premise")])
    opened.close()


def fork_and_ask(url: str, answers: str) -> None:
    """Asks, forks, has the child ask, and asks again."""
    opened = OpenAIJudge(ServerJudgeOptions(urls=(url,)))
    ask(url, answers, "claim")
    forked = multiprocessing.get_context("fork").Process(target=ask_in_a_forked_process, args=(url, answers, opened))
    forked.start()
    forked.join(60)
    forked.kill()
    assert forked.exitcode == 0
    ask(url, answers, "another claim")
    assert opened.choose([ask_verdict("claim", "premise")])[0].label == "yes"


def test_a_forked_process_opens_its_own_connection(serve: Serve, tmp_path: object) -> None:
    server = serve()
    # From a process of its own: threads that other tests left in this one do not survive a fork.
    parent = multiprocessing.get_context("spawn").Process(
        target=fork_and_ask, args=(server.url, f"{tmp_path}/answers.db")
    )
    parent.start()
    parent.join()
    assert parent.exitcode == 0
    assert len(server.asked) == 4
