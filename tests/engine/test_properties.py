"""Tables of runs are those of the plain reference, byte for byte, whatever was computed before and how.

`ASSAY_TEST_EXAMPLES` sets the number of random examples of each property, beside the one that is written here; with it,
Dask and Ray are tried (`just test-engines` does both).
"""

import os
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path

import pytest
from hypothesis import HealthCheck, Phase, example, given, settings
from hypothesis import strategies as st

from deployments.local_server import ServerAddress
from flows.config import runner_options
from tests.deployments.cli.conftest import Outcome
from tests.engine.runs import Night, Row, World, check, questions_of
from tests.faults.conftest import environment
from tests.waiting import wait_until

pytestmark = [pytest.mark.prefect, pytest.mark.models]

EXAMPLES = int(os.environ.get("ASSAY_TEST_EXAMPLES", "0"))
MANY_NIGHTS = 5
"""Nights whose rows a shard consists of at the end: enough for a store to put them together."""
ROWS: tuple[Row, ...] = tuple((f"r{number}", number) for number in range(6))
FIRST = Night((("r0", 0), ("r1", 1), ("r2", 20), ("r3", 3), ("r4", 4), ("r7", 7)), 2, frozenset({3}))
SECOND = Night((("r4", 4), ("r5", 5), ("r2", 20), ("r1", 11), ("r3", 3), ("r6", 20), ("r7", 7)), 3, frozenset({11, 5}))
THIRD = Night((("r3", 3), ("r1", 11), ("r0", 20), ("r5", 5), ("r7", 7)), 7)
"""Nights on which rows move, change, come, go, repeat others, and fail and recover."""

few = settings(
    max_examples=max(1, EXAMPLES),
    phases=tuple(Phase) if EXAMPLES >= 10 else (Phase.explicit, Phase.generate)[: EXAMPLES + 1],
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)


@pytest.fixture(autouse=True)
def _small_windows(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have the runs of this process compute two rows at a time, so that shards have several windows."""
    monkeypatch.setattr(runner_options, "WINDOW_ROWS", 2)


@st.composite
def nights(draw: st.DrawFn) -> Night:
    """Return a night over some of seven rows, each with its usual, a changed, or the same content as others.

    One more row is always there; it has earlier turns, without which a run has fewer stages.
    """
    ids = draw(st.lists(st.integers(0, 6), min_size=1, max_size=6, unique=True), label="rows, in order")
    kinds = st.sampled_from(["usual", "usual", "usual", "changed", "common"])
    contents = [{"usual": row, "changed": row + 10, "common": 20}[draw(kinds, label="content")] for row in ids]
    rows = tuple((f"r{row}", content) for row, content in zip(ids, contents, strict=True))
    failing = draw(st.sets(st.sampled_from(sorted({number for _, number in rows})), max_size=2), label="failing")
    return Night((*rows, ("r7", 7)), draw(st.integers(1, 7), label="rows per shard"), frozenset(failing))


def without_known_failures(history: Iterable[Night]) -> Iterator[Night]:
    """Yield nights, on which no content fails that an earlier night has answers for: nothing is asked about it."""
    answered: set[int] = set()
    for night in history:
        yield replace(night, failing=night.failing - answered)
        answered |= {number for _, number in night.rows} - night.failing


@pytest.mark.simulation
@few
@example(history=[FIRST, SECOND, THIRD])
@given(history=st.lists(nights(), min_size=2, max_size=3))
def test_nights_with_the_same_stores(
    history: list[Night],
    prefect_stub: object,  # noqa: ARG001
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    """Rows are split, ordered, changed, added, removed, repeated, and fail and recover, from night to night."""
    world = World(tmp_path_factory.mktemp("nights"))
    answered: set[str] = set()
    for night in without_known_failures(history):
        world.control.forget()
        check(world.run(night), night)
        asked = world.control.asked
        needed = {question for row in night.rows if row[1] not in night.failing for question in questions_of(row)}
        sound = [question for question in asked if question in needed]
        assert set(sound) == needed - answered
        assert len(sound) == len(set(sound))
        answered |= needed


@pytest.mark.simulation
@few
@example(history=[FIRST, SECOND, THIRD])
@given(history=st.lists(nights(), min_size=2, max_size=3))
def test_rows_are_taken_without_a_cache_of_answers(
    history: list[Night],
    prefect_stub: object,  # noqa: ARG001
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    """Nothing is asked about a row that an earlier night has computed without a failure."""
    world = World(tmp_path_factory.mktemp("uncached"))
    stored: set[Row] = set()
    for number, night in enumerate(without_known_failures(history)):
        world.control.forget()
        check(world.run(night, cache=str(world.folder / f"answers-{number}.db")), night)
        fresh = [row for row in night.rows if row not in stored]
        needed = {question for row in fresh if row[1] not in night.failing for question in questions_of(row)}
        failing = {question for row in fresh if row[1] in night.failing for question in questions_of(row)}
        assert needed <= set(world.control.asked)
        known = {question for row in stored for question in questions_of(row)} - needed - failing
        assert known.isdisjoint(world.control.asked)
        stored |= {row for row in night.rows if row[1] not in night.failing}


@pytest.mark.simulation
def test_one_row_changes_every_night(prefect_stub: object, assay: Callable[..., Outcome], tmp_path: Path) -> None:
    """Change rows of one shard one by one, so that its rows come from many nights, and prune the stores at the end."""
    del prefect_stub
    world, rows = World(tmp_path), list(ROWS)
    stores = ("--tables", str(tmp_path / "tables"), "--cache", str(tmp_path / "answers.db"))
    for change in range(MANY_NIGHTS):
        night = Night(tuple(rows), len(rows))
        check(world.run(night), night)
        place = change % len(rows)
        rows[place] = (rows[place][0], rows[place][1] + 10)
    assert assay("store", "--check", *stores).code == 0
    assert assay("prune", "--yes", *stores).code == 0
    world.control.forget()
    check(world.run(night), night)
    assert assay("store", "--check", *stores).code == 0
    assert world.control.asked == []


@pytest.mark.simulation
@few
@example(night=FIRST, shard_rows=4)
@given(night=nights(), shard_rows=st.integers(1, 7))
def test_rows_that_failed_are_rerun(
    night: Night,
    shard_rows: int,
    prefect_stub: object,  # noqa: ARG001
    assay: Callable[..., Outcome],
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    """Rerun failed rows with empty stores: the other rows come from the run folder."""
    failing = frozenset({night.rows[0][1]})
    night = Night(night.rows, shard_rows, failing)
    world = World(tmp_path_factory.mktemp("rerun"))
    run = world.run(night)
    world.control.fail_on()
    world.control.forget()
    stores = ("--tables", str(world.folder / "others"), "--cache", str(world.folder / "others.db"))
    done = assay("rerun", str(run), "--rows", "failed", "--out", str(world.folder / "rerun"), *stores)
    assert done.code == 0, done.err
    check(world.folder / "rerun", Night(night.rows, shard_rows))
    needed = {question for row in night.rows if row[1] in failing for question in questions_of(row)}
    assert set(world.control.asked) == needed


@pytest.mark.simulation
@few
@example(before=FIRST, after=SECOND)
@given(before=nights(), after=nights())
def test_rows_that_changed_are_rerun(
    before: Night,
    after: Night,
    prefect_stub: object,  # noqa: ARG001
    assay: Callable[..., Outcome],
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    """Rerun changed and added rows with empty stores."""
    before, after = Night(before.rows, after.shard_rows), Night(after.rows, after.shard_rows)
    world = World(tmp_path_factory.mktemp("changed"))
    run = world.run(before)
    world.config(after)
    world.control.forget()
    stores = ("--tables", str(world.folder / "others"), "--cache", str(world.folder / "others.db"))
    done = assay("rerun", str(run), "--rows", "changed", "--out", str(world.folder / "rerun"), *stores)
    assert done.code == 0, done.err
    check(world.folder / "rerun", after)
    needed = {question for row in after.rows if row not in before.rows for question in questions_of(row)}
    assert set(world.control.asked) == needed


@pytest.mark.simulation
def test_a_stage_of_all_rows_is_rerun(prefect_stub: object, assay: Callable[..., Outcome], tmp_path: Path) -> None:
    del prefect_stub
    night, world = Night(ROWS, 4), World(tmp_path)
    run = world.run(night)
    world.control.forget()
    for number, stage in enumerate(("claims", "aggregation")):
        done = assay("rerun", str(run), "--stage", stage, "--out", str(tmp_path / f"rerun-{number}"))
        assert done.code == 0, done.err
        check(tmp_path / f"rerun-{number}", night)
        assert bool(world.control.asked) == (stage == "claims")
        world.control.forget()


@pytest.mark.served
@pytest.mark.parametrize("seed", range(1 if EXAMPLES < 10 else EXAMPLES // 5))
def test_a_killed_run_is_taken_up(
    seed: int,
    prefect_stub: object,  # noqa: ARG001
    prefect_address: ServerAddress,
    tmp_path: Path,
) -> None:
    """Kill a run at a question: the next one has the tables of the reference, and asks for no answer twice for long."""
    night, world = Night(ROWS, 2), World(tmp_path)
    whole = {question for row in ROWS for question in questions_of(row)}
    world.control.kill_after(1 + (seed * 7919 + len(whole) // 2) % len(whole))
    killed = world.start(night, environment(tmp_path, prefect_address))
    assert killed.wait() == -9, killed.log.read_text(encoding="utf-8")
    world.control.release()
    check(world.run(night), night)
    assert set(world.control.asked) == whole
    world.control.forget()
    check(world.run(Night(ROWS, 3)), Night(ROWS, 3))
    assert world.control.asked == []


@pytest.mark.served
def test_two_runs_at_once_share_their_work(prefect_address: ServerAddress, tmp_path: Path) -> None:
    """Start a run while another one waits for its first answers."""
    first, second, world = Night(ROWS, 2), Night(ROWS[::-1], 4), World(tmp_path)
    world.control.hold()
    runs = []
    for night in (first, second):
        runs.append((world.start(night, environment(tmp_path, prefect_address)), night))
        wait_until(runs[-1][0].is_computing, "a run that has begun")
        wait_until(lambda: world.control.asked, "a question")
    world.control.release()
    for run, night in runs:
        assert run.wait() == 0, run.log.read_text(encoding="utf-8")
        check(run.folder, night)
    asked = world.control.asked
    assert set(asked) == {question for row in ROWS for question in questions_of(row)}
    assert len(asked) == len(set(asked))


@pytest.mark.skipif("ASSAY_TEST_EXAMPLES" not in os.environ, reason="two clusters: set ASSAY_TEST_EXAMPLES")
@pytest.mark.parametrize("engine", ["dask", "ray"])
def test_engines_compute_the_same(engine: str, prefect_server: str, tmp_path: Path) -> None:
    """Compute some rows with threads, others in processes, and a third night with threads again."""
    del prefect_server
    if find_spec(f"prefect_{engine}") is None:
        pytest.skip(f"no {engine}: prefect_{engine} cannot be imported")
    world = World(tmp_path)
    for night, runner in ((Night(ROWS[:2], 1), "threads"), (Night(ROWS, 2), engine), (Night(ROWS[::-1], 4), "threads")):
        world.control.forget()
        check(world.run(night, runner=runner, workers=2), night)
    assert world.control.asked == []
