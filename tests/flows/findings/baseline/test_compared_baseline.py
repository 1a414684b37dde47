"""A run names the rows that changed since its baseline."""

import pytest

from tests.flows.test_rerun import Bench, bench, manifest, row  # noqa: F401 a fixture

pytestmark = [pytest.mark.prefect, pytest.mark.models]


def test_run_names_the_rows_that_changed_since_its_baseline(bench: Bench) -> None:  # noqa: F811
    monday = bench.run("monday")
    bench.write(row(0), row(1, retrieved_contexts=["Hall 7 is closed."]), row(2), row(3), row(6))
    tuesday = bench.run("tuesday", baseline=str(monday))
    said = manifest(tuesday)["baseline"]
    assert (said["folder"], said["run_id"]) == (str(monday), manifest(monday)["run_id"])
    assert said["rows"] == {"added": 1, "removed": 1, "changed": 1, "unchanged": 3}
    assert said["changed_columns"] == {"retrieved_contexts": 1}
    assert said["rows_changed"] == [{"row_id": "r1", "columns": ["retrieved_contexts"]}]
    # Row 1: a verdict, as nv_accuracy reads no contexts; row 6: claims, a verdict and two ratings.
    assert (said["questions"], said["asked"]) == (20, 5)
    assert said["stored"] == 15
