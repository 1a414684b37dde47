"""Concurrency limits of a judge: their names, limits on a real server, and the number of stages at work at once."""

import time
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from threading import Lock

import pytest
from prefect.client.orchestration import get_client

from metric_core.question_kinds import QuestionKind
from tasks.engine.concurrency_limits import create_limits, hold_slot, limit_name, limits_of
from tasks.models.judges.protocol import Judge
from tasks.models.judges.scripted import ScriptedJudge
from tasks.options.judge_options import JudgeSettings
from tasks.options.judged_settings import JudgedSettings
from tasks.options.settings import Settings
from tests.waiting import DEAD_SECONDS


def judge(url: str, slots: int | None = None) -> JudgeSettings:
    return JudgeSettings.model_validate(
        {"backend": "server", "server": {"urls": [url], "model": "A/b"}, "max_concurrent_stages": slots}
    )


def not_opened() -> Judge:
    raise AssertionError("a judge was opened")


def test_the_name_of_a_limit_depends_on_the_judge_not_on_its_options() -> None:
    one, same, other = judge("http://a:1/v1", 4), judge("http://a:1", 2), judge("http://b:1/v1", 4)
    assert limit_name(one) == limit_name(same)
    assert limit_name(one) != limit_name(other)
    assert limit_name(one).startswith("assay-judge-a-b-")


def test_a_judge_without_slots_has_no_limit() -> None:
    assert limits_of([judge("http://a:1/v1")]) == {}
    settings = JudgedSettings(judge=judge("http://a:1/v1"))
    with hold_slot(settings, [QuestionKind.VERDICT], not_opened), hold_slot(Settings(), (), not_opened):
        pass  # no server is needed


@pytest.mark.prefect
@pytest.mark.usefixtures("prefect_server")
class TestOnAServer:
    """Tests with a Prefect server."""

    def test_limits_are_created_once_and_changed_only_on_deployment(self) -> None:
        name = limit_name(judge("http://made:1/v1"))
        create_limits([judge("http://made:1/v1", 2)], update=False)
        create_limits([judge("http://made:1/v1", 5)], update=False)
        assert self.slots(name) == 2
        assert create_limits([judge("http://made:1/v1", 5)], update=True) == {name: 5}
        assert self.slots(name) == 5

    def test_no_more_stages_than_slots_are_at_work(self) -> None:
        settings = JudgedSettings(judge=judge("http://busy:1/v1", 1))
        create_limits([settings.judge], update=True)
        lock, at_once, most = Lock(), 0, 0

        def work() -> None:
            nonlocal at_once, most
            with hold_slot(settings, [QuestionKind.VERDICT], lambda: ScriptedJudge({})):
                with lock:
                    at_once += 1
                    most = max(most, at_once)
                time.sleep(0.05)
                with lock:
                    at_once -= 1

        with ThreadPoolExecutor(3) as pool:
            # As Prefect runs tasks: a thread has the settings of its flow.
            for done in [pool.submit(copy_context().run, work) for _ in range(3)]:
                done.result(timeout=DEAD_SECONDS)
        assert most == 1

    def test_a_name_without_a_limit_is_refused(self) -> None:
        with (
            pytest.raises(Exception, match="assay-judge"),
            hold_slot(
                JudgedSettings(judge=judge("http://none:1/v1", 1)), [QuestionKind.VERDICT], lambda: ScriptedJudge({})
            ),
        ):
            pass

    def slots(self, name: str) -> int:
        with get_client(sync_client=True) as client:
            return client.read_global_concurrency_limit_by_name(name).limit
