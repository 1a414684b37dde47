"""Changes of versions between two runs."""

from pathlib import Path
from typing import Any

import pytest

from tasks.history.recorded_run import VersionChange, find_version_changes
from tasks.history.run_entry import read_run_entry
from tests.tasks.history.run_folders import JUDGE, write_run

OTHER = {"verdict": "c" * 64}


@pytest.mark.parametrize(
    ("changed", "changes"),
    [
        ({}, []),
        ({"config": {"system_version": "1.1"}}, [VersionChange("system", "1.0", "1.1")]),
        ({"deployment": {"name": "monitor", "index": "handbook", "version": "2"}}, ["index"]),
        ({"questions": ("Who?", "Why not?")}, ["data"]),
        ({"questions": ("Who?",)}, ["data"]),
        ({"judge": JUDGE | {"model": "judge-70b"}, "judge_fingerprints": OTHER}, ["judge"]),
        ({"judge": JUDGE | {"served": "beef" * 8}, "judge_fingerprints": OTHER}, ["judge_server"]),
        (
            {"prompts": OTHER, "judge_fingerprints": OTHER},
            [VersionChange("prompts", "0.1.0", "0.1.0", ("verdict",))],
        ),
        (
            {"prompts": OTHER, "judge_fingerprints": OTHER, "judge": JUDGE | {"model": "judge-70b"}},
            ["judge", VersionChange("prompts", "0.1.0", "0.1.0", ("verdict",))],
        ),
        (
            {"prompts": OTHER, "judge_fingerprints": OTHER, "versions": {"rag-assay": "0.1.0+g2"}},
            [
                VersionChange("prompts", "0.1.0", "0.1.0+g2", ("verdict",)),
                VersionChange("rag_assay", "0.1.0", "0.1.0+g2"),
            ],
        ),
        (
            {"versions": {"rag-assay": "0.1.0+g2"}},
            [VersionChange("rag_assay", "0.1.0", "0.1.0+g2", is_comparable=True)],
        ),
        (
            {"versions": {"rag-assay": "0.1.0+g2"}, "judge": JUDGE | {"model": "judge-70b"}},
            ["judge", VersionChange("rag_assay", "0.1.0", "0.1.0+g2")],
        ),
        (
            {"versions": {"rag-assay": "0.1.0+g2"}, "formulas": "e" * 32},
            [
                VersionChange("formulas", "0.1.0", "0.1.0+g2"),
                VersionChange("rag_assay", "0.1.0", "0.1.0+g2"),
            ],
        ),
        ({"formulas": None, "versions": {"rag-assay": "0.2"}}, [VersionChange("rag_assay", "0.1.0", "0.2")]),
        ({"judge_fingerprints": OTHER}, [VersionChange("judge_settings", "", "verdict")]),
        ({"judge_fingerprints": {"claims": "d" * 64}}, []),  # other metrics ask other questions
        ({"embedder": {"model": "minilm", "revision": "2"}}, []),  # none before
        ({"versions": {"rag-assay": "0.2.0"}}, ["rag_assay"]),
        ({"prompts": {}, "judge_fingerprints": {}}, []),  # of a run that asked no judge
    ],
)
def test_a_change_of_a_version_is_found(
    tmp_path: Path, changed: dict[str, Any], changes: list[VersionChange | str]
) -> None:
    before = read_run_entry(write_run(tmp_path / "a", 1))
    after = read_run_entry(write_run(tmp_path / "b", 1, **changed))
    found = find_version_changes(before, after)
    assert [each if isinstance(wanted, VersionChange) else each.what for each, wanted in zip(found, changes)] == changes  # noqa: B905
    assert len(found) == len(changes)


def test_the_order_of_the_rows_is_no_change(tmp_path: Path) -> None:
    rows = [{"row_id": "a", "user_input": "Who?"}, {"row_id": "b", "user_input": "Why?"}]
    digests = set()
    for order in (rows, rows[::-1]):
        folder = write_run(tmp_path / "run", 1)
        _write_samples(folder, order)
        digests.add(read_run_entry(folder).versions["data"])
    assert len(digests) == 1


def _write_samples(folder: Path, rows: list[dict[str, str]]) -> None:
    import pyarrow.parquet as pq

    from tests.tasks.builders import samples_table

    pq.write_table(samples_table(*rows), folder / "stages" / "samples.parquet")
