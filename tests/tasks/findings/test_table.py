"""The table says of each finding what its room has."""

from tasks.findings.table import TABLE


def test_a_finding_that_counts_says_for_which_runs_and_no_other_does() -> None:
    assert [each.name for each in TABLE if (each.load().count is None) != (each.is_counted is None)] == []
