"""Baselines in a folder and at a URL."""

import json
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Literal

import fsspec
import pytest

from metric_core.errors import AssayError, ConfigError
from tasks.runs.baselines import EVALUATIONS, RETAINED, Baseline, Baselines, check_index_name

START = datetime(2026, 11, 1, tzinfo=UTC)
Make = Callable[..., Baseline]


@pytest.fixture
def make(tmp_path: Path) -> Make:
    """Return a function that creates a run folder and its baseline record."""

    def baseline(version: str, minute: int, why: Literal["first", "passed"] = "passed") -> Baseline:
        folder = tmp_path / "runs" / f"{version}-{minute}"
        (folder / "stages").mkdir(parents=True)
        (folder / "run.json").write_text(json.dumps({"version": version}), encoding="utf-8")
        (folder / "stages" / "samples.parquet").write_bytes(b"rows")
        return Baseline(
            index="handbook",
            version=version,
            announced=START + timedelta(minutes=minute),
            run_id=f"run-{version}-{minute}",
            folder=str(folder),
            dataset="data.jsonl",
            accepted=START + timedelta(hours=1),
            why=why,
        )

    return baseline


@pytest.fixture(params=["folder", "url"])
def root(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if request.param == "folder":
        return str(tmp_path / "baselines")
    fsspec.filesystem("memory").store.clear()
    return "memory://baselines"


def test_an_index_without_a_baseline_has_none(root: str) -> None:
    assert Baselines(root).current("handbook") is None


def test_newest_version_is_the_baseline_in_any_order(root: str, make: Make) -> None:
    store = Baselines(root)
    assert store.accept(make("v1.9", 1, "first"))
    assert store.accept(make("v1.10", 0))
    assert not store.accept(make("v1.9.5", 2))
    current = Baselines(root).current("handbook")
    assert current is not None
    assert (current.version, current.why) == ("v1.10", "passed")
    assert [each.version for each in store.acceptances("handbook")] == ["v1.9", "v1.10"]


def test_late_record_of_an_older_version_changes_nothing(root: str, make: Make) -> None:
    store = Baselines(root)
    assert store.accept(make("3", 3))
    late = make("2", 2)
    store._fs.pipe_file(f"{store._folder('handbook')}/{late.run_id}.json", late.model_dump_json().encode())
    current = store.current("handbook")
    assert current is not None
    assert current.version == "3"


def test_version_announced_by_a_clock_that_was_ahead_keeps_no_later_one_out(root: str, make: Make) -> None:
    store = Baselines(root)
    ahead = make("blue", 60 * 24 * 100)
    assert store.accept(make("red", 0))
    assert store.accept(ahead.model_copy(update={"accepted": ahead.announced}))
    current = store.current("handbook")
    assert (current and current.version) == "blue"
    assert store.accept(make("green", 1))
    current = store.current("handbook")
    assert (current and current.version) == "green"


def test_last_accepted_run_about_no_index_is_the_baseline_whatever_its_clock_said(root: str, make: Make) -> None:
    store = Baselines(root, EVALUATIONS)
    ahead = make("2027-03-08T06:00:00Z", 60 * 24 * 100)
    assert store.accept(ahead.model_copy(update={"accepted": ahead.announced}))
    assert store.accept(make("2026-11-02T06:00:00Z", 60 * 24))
    current = store.current("handbook")
    assert (current and current.version) == "2026-11-02T06:00:00Z"


def test_the_same_run_can_be_accepted_again(root: str, make: Make) -> None:
    store, baseline = Baselines(root), make("1", 1)
    assert store.accept(baseline)
    assert store.accept(baseline)
    assert len(store.acceptances("handbook")) == 1


def test_only_the_last_acceptances_are_kept(root: str, make: Make) -> None:
    store = Baselines(root)
    for number in range(RETAINED + 3):
        assert store.accept(make(str(number), number))
    assert [each.version for each in store.acceptances("handbook")] == [
        str(number) for number in range(3, RETAINED + 3)
    ]


def test_the_run_folder_comes_back_on_a_machine_without_it(
    make: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ASSAY_HOME", str(tmp_path / "home"))
    fsspec.filesystem("memory").store.clear()
    store, baseline = Baselines("memory://baselines"), make("1", 1)
    assert store.accept(baseline)
    Path(baseline.folder).rename(tmp_path / "elsewhere")
    accepted = store.current("handbook")
    assert accepted is not None
    folder = store.run_folder(accepted)
    assert (folder / "stages" / "samples.parquet").read_bytes() == b"rows"
    assert store.run_folder(accepted) == folder


def test_deployments_never_see_the_baselines_of_each_other(root: str, make: Make) -> None:
    one, other = Baselines(root, "index-rebuilt-a.json"), Baselines(root, "index-rebuilt-b")
    assert one.accept(make("7", 7, "first"))
    assert other.current("handbook") is None
    assert other.accept(make("3", 3, "first"))
    versions = [(each.version, each.deployment) for store in (one, other) if (each := store.current("handbook"))]
    assert versions == [("7", "index-rebuilt-a.json"), ("3", "index-rebuilt-b")]


def test_missing_run_folder_is_reported_with_a_remedy(make: Make, tmp_path: Path) -> None:
    store, baseline = Baselines(str(tmp_path / "baselines")), make("1", 1)
    store.accept(baseline)
    Path(baseline.folder).rename(tmp_path / "elsewhere")
    with pytest.raises(
        AssayError, match=r"does not exist\. Restore it, or accept another run.*handbook/index-rebuilt/run-1-1\.json"
    ):
        store.run_folder(baseline.model_copy(update={"deployment": "index-rebuilt"}))


def test_a_damaged_record_is_named(root: str, make: Make) -> None:
    store = Baselines(root)
    store.accept(make("1", 1))
    store._fs.pipe_file(f"{store._folder('handbook')}/run-1-1.json", b"{")
    with pytest.raises(AssayError, match=r"run-1-1\.json of a baseline cannot be read"):
        store.current("handbook")


def test_index_name_must_be_a_valid_file_name() -> None:
    for name in ["", "..", "a/b", "a b", "ä", ".hidden", "x" * 129]:
        with pytest.raises(ConfigError, match="the id of an index must have at most 128 letters"):
            check_index_name(name)


def test_unwritable_store_is_named_by_its_setting(tmp_path: Path, make: Make) -> None:
    (tmp_path / "baselines").mkdir()
    (tmp_path / "baselines" / "handbook").write_text("a file where a folder should be")
    with pytest.raises(AssayError, match=r"baselines/handbook/.* cannot be written.*`deploy.baselines`"):
        Baselines(str(tmp_path / "baselines")).accept(make("1", 1))
