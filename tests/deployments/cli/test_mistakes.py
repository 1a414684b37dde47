"""What a user's mistake is answered with: one message that names what was perhaps meant, and no traceback."""

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.deployments.cli.conftest import Outcome

Assay = Callable[..., Outcome]


@pytest.mark.parametrize(
    ("wrong", "right"),
    [("rn", "run"), ("evaluate", "run"), ("diff", "compare"), ("metric", "metrics"), ("plna", "plan")],
)
def test_a_wrong_verb_is_answered_with_a_right_one(assay: Assay, wrong: str, right: str) -> None:
    outcome = assay(wrong)
    assert outcome.code == 2
    assert f"No such command '{wrong}'. Did you mean '{right}'?" in outcome.err


def test_a_wrong_option_is_answered_with_a_right_one(assay: Assay) -> None:
    outcome = assay("run", "--metrcs", "faithfulness")
    assert outcome.code == 2
    assert "No such option: --metrcs" in outcome.err
    assert "--metrics" in outcome.err


@pytest.mark.parametrize(
    ("wrong", "right"),
    [
        ("noise", "noise_sensitivity"),
        ("faithfullness", "faithfulness"),
        ("precison", "context_precision"),
        ("entity", "context_entity_recall"),
        ("semantic", "semantic_similarity"),
    ],
)
def test_a_wrong_metric_is_answered_with_a_right_one(assay: Assay, wrong: str, right: str) -> None:
    outcome = assay("metrics", wrong)
    assert outcome.code == 2
    assert f"unknown metric '{wrong}'. Did you mean {right}" in outcome.err


def test_a_metric_that_is_like_no_other_is_answered_with_the_list(assay: Assay) -> None:
    assert "`assay metrics` lists the known ones" in assay("metrics", "zzz").err


def test_a_file_that_can_not_be_written_is_named(assay: Assay, tmp_path: Path) -> None:
    outcome = assay("init", "--out", str(tmp_path / "absent" / "assay.toml"))
    assert outcome.code == 2
    assert outcome.err == f"error: {tmp_path / 'absent' / 'assay.toml'}: No such file or directory\n"


def test_a_narrow_terminal_gets_a_narrow_table(assay: Assay, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("deployments.cli.metrics.stdout._width", 80)
    shown = assay("metrics").out
    assert "columns" not in shown.splitlines()[0]
    assert max(map(len, shown.splitlines())) <= 80
