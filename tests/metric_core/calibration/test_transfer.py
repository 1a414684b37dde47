"""Audits: how often one finds a difference where there is none, and where there is one."""

import numpy as np
import pytest

from metric_core.calibration import transfer
from metric_core.calibration.judge_error import JudgeErrorFit, estimate_judge_error
from metric_core.calibration.transfer import check_transfer


def judge(generator: np.random.Generator, rows: int, share: float, errs: tuple[float, float]) -> JudgeErrorFit | None:
    labels = (generator.random(rows) < share).astype(float)
    right = np.where(labels > 0, generator.random(rows) < errs[0], generator.random(rows) < errs[1])
    return estimate_judge_error(labels, np.where(right, labels, 1 - labels), bounds=(0.0, 1.0))


@pytest.mark.simulation
@pytest.mark.parametrize(
    ("now", "least", "most"),
    [((0.95, 0.8), 0.0, 0.07), ((0.95, 0.2), 0.75, 1.0), ((0.5, 0.8), 0.8, 1.0)],
    ids=["nothing changed", "lenient on bad rows", "strict on good rows"],
)
def test_an_audit_finds_what_changed_and_seldom_what_did_not(
    now: tuple[float, float], least: float, most: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(transfer, "_QUANTILES", 300)
    generator = np.random.default_rng(2)
    found = made = 0
    for _ in range(150):
        before, after = judge(generator, 100, 0.6, (0.95, 0.8)), judge(generator, 30, 0.7, now)
        if before is not None and after is not None:
            made += 1
            found += not check_transfer(before, after).holds
    assert least <= found / made <= most


def test_grades_are_audited_by_the_ends_of_their_line() -> None:
    before = JudgeErrorFit(0.2, 0.6, 1e-4, -1e-4, 2e-4, 100)
    assert check_transfer(before, JudgeErrorFit(0.21, 0.58, 1e-3, -1e-3, 2e-3, 25)).holds
    changed = check_transfer(before, JudgeErrorFit(0.55, 0.3, 1e-3, -1e-3, 2e-3, 25))
    assert (changed.holds, changed.bad is not None and changed.bad.now) == (False, 0.55)
