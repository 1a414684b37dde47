"""docs/operations.md says what to do about every kind of incident."""

import re

from flows.monitoring import chain, clock_checks, gating, growth, lost_baseline, missed_runs, source_checks
from flows.monitoring.incidents import UNDECIDED, error_key
from flows.monitoring.monitored_run_alarms import alarm_key
from tasks.record.outcome import OutcomeAlarm
from tests.structure.house import ROOT

KEYS = (
    error_key(ValueError(), "no rows"),
    source_checks.EMPTY,
    source_checks.UNCHANGED,
    source_checks.ROWS,
    source_checks.MOST_ROWS,
    source_checks.COLUMNS,
    f"{source_checks.NULLS}topic",
    growth.ROWS,
    growth.TOKENS,
    growth.SECONDS,
    lost_baseline.KEY,
    clock_checks.KEY,
    missed_runs.KEY,
    alarm_key(OutcomeAlarm(metric="faithfulness", sentence="")),
    "gate:failed:regression:faithfulness",
    f"{UNDECIDED}regression:faithfulness",
    gating.NOT_COMPARABLE,
    chain._HISTORY,
    chain._NOT_RECORDED,
    "judge:llama",
    "objective:faithfulness >= 0.8 in 28 of 30 nights",
)


def test_each_key_begins_like_one_in_the_table() -> None:
    for key in KEYS:
        page = (ROOT / "docs" / "operations.md").read_text(encoding="utf-8")
        section = page.partition("## What do I do about this message?")[2].partition("\n## ")[0]
        cells = re.findall(r"^\| (`[^|]+) \|", section, re.MULTILINE)
        begin = [word for cell in cells for word in re.findall(r"`([^`]+)`", cell)]
        assert [word for word in begin if key.startswith(word)], key
