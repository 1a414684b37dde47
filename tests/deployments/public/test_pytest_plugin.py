"""The plugin of pytest, in sessions of its own."""

import json
import tomllib
from pathlib import Path

import pytest

from tests.structure.house import ROOT
from tests.waiting import DEAD_SECONDS

PLUGIN = "rag_assay.pytest_plugin"

TESTS = """
    from rag_assay import assert_gate
    import pytest

    ROWS = [{"user_input": "Where?", "response": "It is in Delft.", "retrieved_contexts": ["It is in Delft."]}] * 3
    OPTIONS = {"metrics": ["faithfulness"], "id_column": ""}

    def test_faithful(assay_run):
        run = assay_run(ROWS[:1], **OPTIONS)
        assert_gate(run, {"coverage": {"scored_at_least": 1.0}})

    @pytest.mark.parametrize("attempt", [1, 2])
    def test_is_evaluated_once(assay_run, attempt):
        assert assay_run(ROWS[:1], **OPTIONS) is assay_run(list(ROWS[:1]), **OPTIONS)

    def test_fails_with_the_rules(assay_run):
        assert_gate(assay_run(ROWS[:1], **OPTIONS), ["faithfulness.least >= 1.01"])
"""


@pytest.fixture
def session(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> pytest.Pytester:
    """Return a session that finds this checkout."""
    monkeypatch.setenv("PYTHONPATH", f"{ROOT}:{ROOT / 'deployments' / 'public'}")
    return pytester


@pytest.mark.prefect
@pytest.mark.models
def test_tests_evaluate_answers_once_and_check_a_gate(prefect_server: str, session: pytest.Pytester) -> None:
    assert prefect_server
    session.makepyfile(TESTS)
    result = session.runpytest_subprocess("-p", PLUGIN, "--assay-runs", "kept", timeout=DEAD_SECONDS)
    result.assert_outcomes(passed=3, failed=1)
    result.stdout.fnmatch_lines(
        [
            "E*AssertionError: the gate failed for *kept*-run-1:",
            "*faithfulness, least*at least 1.01*",
            "*= rag-assay =*",
            "*kept*-run-1: faithfulness *",
        ]
    )
    assert "gate_assertion.py" not in result.stdout.str()
    (folder,) = (session.path / "kept").iterdir()
    assert json.loads((folder / "run.json").read_text(encoding="utf-8"))["rows"] == 1


def test_a_session_without_such_tests_loads_no_package(session: pytest.Pytester) -> None:
    session.makepyfile(
        """
        import sys

        def test_nothing():
            assert not {"prefect", "pyarrow", "metric_core", "tasks", "deployments"} & sys.modules.keys()
        """
    )
    result = session.runpytest_subprocess("-p", PLUGIN, timeout=DEAD_SECONDS)
    result.assert_outcomes(passed=1)
    result.stdout.no_fnmatch_line("*= rag-assay =*")


def test_the_plugin_is_registered_under_the_name_of_its_module() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert project["entry-points"]["pytest11"] == {PLUGIN: PLUGIN}
    assert Path(ROOT, "deployments/public", *PLUGIN.split(".")).with_suffix(".py").is_file()
