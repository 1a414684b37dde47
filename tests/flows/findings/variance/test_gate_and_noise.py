"""A gate on scores whose judge has a known variance."""

from pathlib import Path
from typing import Any

import pytest

from flows.results.gate_assertion import assert_gate
from tests.tasks.compared import write_run


def test_a_gate_with_one_bar_is_not_decided_by_the_noise_of_the_judge(tmp_path: Path) -> None:
    run = write_run(tmp_path / "run", 0.5)
    shares = {"rows": 1.0, "answers": None, "judge": 0.0, "run": 0.0, "judge_interval": None}
    variance: dict[str, Any] = {"rows": 60, "judge": 0.01, "interval": None, "run": 0.0, "noise": 0.01, "advice": ""}
    variance |= {"of_anchor": False, "shares": shares}
    noisy = write_run(tmp_path / "noisy", 0.5, judge_variance={"faithfulness": variance})
    just_passed = {"absolute": ["faithfulness >= 0.505"], "inconclusive": "failed"}
    just_failed = {"absolute": ["faithfulness >= 0.59"], "inconclusive": "passed"}
    assert assert_gate(run, just_passed).outcome == "passed"
    with pytest.raises(AssertionError, match="the gate failed"):
        assert_gate(run, just_failed)
    for gate in (just_passed, just_failed):
        with pytest.raises(AssertionError, match="the gate is inconclusive") as caught:
            assert_gate(noisy, gate)
        assert "within the judge's noise: judged again, the same answers may pass or fail" in str(caught.value)
