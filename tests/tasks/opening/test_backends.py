"""A backend is one declaration and one function that opens it; everything else follows from these."""

from pathlib import Path

import pytest

from metric_core.errors import ConfigError
from metric_core.prompts.judge_questions import ask_verdict
from tasks.cache.cached_judge import CachedJudge
from tasks.models.judges.protocol import IN_PROCESS, Judge
from tasks.models.judges.scripted import ScriptedJudge
from tasks.opening import backends
from tasks.opening.backends import EMBEDDERS, JUDGES, JudgeHelpers
from tasks.opening.run_models import RunModels
from tasks.options.evaluation_options import EvaluationOptions
from tasks.options.judge_options import JudgeOptions, JudgeSettings, SingleJudgeSettings
from tasks.options.judged_settings import JudgedSettings
from tasks.options.model_backends import BACKENDS, Backend, describe_backends
from tasks.plugins.load_object import Group


def test_every_declared_backend_is_opened_by_a_function() -> None:
    assert BACKENDS[Group.JUDGES].keys() == JUDGES.keys()
    assert BACKENDS[Group.EMBEDDERS].keys() == EMBEDDERS.keys()


def test_judges_without_a_server_compute_in_this_process() -> None:
    assert {"builtin", "verifier", "scripted"} <= IN_PROCESS
    assert IN_PROCESS.isdisjoint({"server", "panel", "my_package:Judge"})


def test_a_new_judge_backend_is_a_declaration_and_a_function(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    opened: list[str] = []

    def open_agreeable(settings: SingleJudgeSettings, helpers: JudgeHelpers) -> Judge:
        del helpers
        opened.append(settings.backend)
        return ScriptedJudge({"verdict": "yes"})

    new = Backend(description="agrees with everything", may_rate=True)
    monkeypatch.setitem(BACKENDS, Group.JUDGES, {**BACKENDS[Group.JUDGES], "agreeable": new})
    monkeypatch.setattr(backends, "JUDGES", {**JUDGES, "agreeable": open_agreeable})

    settings = JudgedSettings.model_validate(
        {"judge": JudgeSettings(backend="agreeable"), "cache": f"sqlite:///{tmp_path}/answers.db"}
    )
    run = RunModels()
    judges = [run.open_judge(settings.judge, settings) for _ in range(2)]
    assert [judge.choose([ask_verdict("It rains.", "Rain.")])[0].label for judge in judges] == ["yes", "yes"]
    assert opened == ["agreeable"]
    assert not settings.judge.is_plugin
    assert JudgeOptions(judge=settings.judge).can_rate
    assert EvaluationOptions(judge=settings.judge).verdict_kind == "binary"
    assert "agreeable (agrees with everything)" in describe_backends(Group.JUDGES)


def test_a_script_is_read_each_time_it_is_opened(tmp_path: Path) -> None:
    script = tmp_path / "answers.json"
    settings = JudgedSettings.model_validate(
        {"judge": JudgeSettings(backend="scripted", script=str(script)), "cache": f"sqlite:///{tmp_path}/answers.db"}
    )
    run, labels = RunModels(), []
    for label in ("yes", "no"):
        script.write_text(f'[{{"kind": "verdict", "answer": "{label}"}}]', encoding="utf-8")
        judge = run.open_judge(settings.judge, settings)
        assert isinstance(judge, CachedJudge)
        labels.append(judge.uncached.choose([ask_verdict("It rains.", "Rain.")])[0].label)
    assert labels == ["yes", "no"]


@pytest.mark.parametrize("backend", ["server", "verifier", "scripted"])
def test_a_backend_says_which_option_it_lacks(backend: str, tmp_path: Path) -> None:
    settings = JudgedSettings.model_validate(
        {"judge": JudgeSettings(backend=backend), "cache": f"sqlite:///{tmp_path}/answers.db"}
    )
    with pytest.raises(ConfigError, match=rf"judge\.backend is '{backend}', but judge\.(server|profile|script)"):
        RunModels().open_judge(settings.judge, settings)
