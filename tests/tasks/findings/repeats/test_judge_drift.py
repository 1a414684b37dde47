"""Judges that are watched by anchor rows that are asked about again, night after night."""

from collections.abc import Callable, Collection
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from benchmarks.judge_drift import ONSET, QUIET, YEAR, World, night_told
from metric_core.statistics.asked_again import FULL_RUNS, MOST_EARLIER, RUNS_TESTED, count_rows
from tasks.findings.repeats.judge_drift import (
    JudgeDriftDetector,
    PastRepeat,
    RowAnswers,
    find_changed_judges,
)
from tasks.findings.repeats.repeat_record import AskedAgain, JudgeRepeat

START = datetime(2026, 11, 2, 3, tzinfo=UTC)
ROWS = [f"row {number}" for number in range(200)]
EACH = count_rows(0.1, len(ROWS))[0]


class Sequence:
    """Nights that ask one judge again.

    Args:
        names: Names of the judges.
    """

    def __init__(self, *names: str) -> None:
        self.names = names or ("llama",)
        self.watch = JudgeDriftDetector(0.1)
        self.past: list[PastRepeat] = []
        self.start = START
        self.rows: tuple[str, ...] = ()

    def night(
        self,
        others: Collection[str] = (),
        reference: str = "one",
        of: Callable[[str], bool] = lambda _name: True,
        *,
        restart: bool = False,
    ) -> JudgeRepeat:
        """Ask again, with another verdict about some rows by some judges, and return the entry of the first judge."""
        turn = self.watch.choose_turn(ROWS, reference, self.start, self.past, restart=restart)
        judges = [
            self.watch.repeat(
                turn,
                name,
                {
                    row: RowAnswers(float(row in others), row in others) if of(name) else RowAnswers(0, False)
                    for row in turn.rows
                },
                judges=len(self.names),
                place="http://gpu:8000/v1",
            )
            for name in self.names
        ]
        self.past.append(PastRepeat(self.start, turn.to_record().extend(judges=judges)))
        self.rows = turn.rows
        self.start += timedelta(days=1)
        return judges[0]

    @property
    def last(self) -> AskedAgain:
        return self.past[-1].found

    def until_told(self, others: Collection[str], most: int = RUNS_TESTED) -> JudgeRepeat:
        for _ in range(most):
            if (found := self.night(others)).change is not None:
                return found
        raise AssertionError(f"not told within {most} nights")


def test_all_rows_are_asked_about_at_first_and_then_each_in_turn() -> None:
    nights = Sequence()
    for _ in range(FULL_RUNS):
        nights.night()
        assert len(nights.rows) == len(ROWS)
    asked: list[str] = []
    for _ in range(-(-len(ROWS) // EACH)):
        nights.night()
        asked += nights.rows
        assert len(nights.rows) == EACH
    assert set(asked) == set(ROWS)
    assert len(asked) == len(ROWS) + EACH - len(ROWS) % EACH, "no row has a second turn before all had one"


@pytest.mark.parametrize("quiet", [0, 3, 20])
def test_a_change_is_told_once_with_its_night_and_its_size(quiet: int) -> None:
    nights = Sequence()
    for _ in range(FULL_RUNS + quiet):
        assert nights.night().change is None
    changed = nights.start
    found = nights.until_told(ROWS[::5])
    told = found.change
    assert told is not None
    assert abs(datetime.fromisoformat(told.since) - changed) <= timedelta(days=1)
    assert told.sentence.startswith(
        "the judge llama at http://gpu:8000/v1 answers differently under the same name since "
    )
    assert f"{told.changed} of {told.rows} anchor rows asked again got another verdict, none is usual" in (
        told.sentence
    )
    assert nights.night(ROWS[::5]).change == told
    assert [(each.judge, each.change) for each in find_changed_judges(nights.last)] == [("llama", told)]


def test_a_change_in_the_second_night_is_told_that_night() -> None:
    nights = Sequence()
    nights.night()
    assert nights.night(ROWS[::5]).change is not None


def test_rows_that_have_always_fluctuated_are_no_evidence() -> None:
    nights = Sequence()
    for _ in range(40):
        assert nights.night(ROWS[::5]).log_e_value <= 0.01
    assert all(count <= MOST_EARLIER for count, *_ in nights.last.judges[0].earlier.values())


def test_a_judge_that_answers_as_before_again_is_over_after_a_week_and_watched_from_the_start() -> None:
    nights = Sequence()
    for _ in range(FULL_RUNS):
        nights.night()
    nights.until_told(ROWS[::3])
    over = 0
    while not nights.night().has_returned:
        over += 1
        assert over < 2 * RUNS_TESTED
    assert over >= RUNS_TESTED - 2
    assert find_changed_judges(nights.last) == ()
    assert nights.night().change is None
    assert (nights.last.repeat, len(nights.rows)) == (1, len(ROWS))


@pytest.mark.parametrize("new", [{"reference": "two"}, {"restart": True}])
def test_another_judge_or_new_kept_answers_restart_all_but_the_year(new: dict[str, Any]) -> None:
    nights = Sequence()
    for _ in range(FULL_RUNS + 1):
        nights.night()
    nights.until_told(ROWS[::2])
    count = len(nights.past)
    found = nights.night(**new)
    assert (found.change, nights.last.repeat, nights.last.number) == (None, 1, count + 1)
    nights.start = datetime(2027, 1, 1, 3, tzinfo=UTC)
    nights.night(reference=new.get("reference", "one"))
    assert (nights.last.repeat, nights.last.number) == (2, 1)


def test_the_judge_of_several_that_changed_is_named() -> None:
    nights = Sequence("llama", "qwen")
    for _ in range(FULL_RUNS):
        nights.night()
    for _ in range(2 * RUNS_TESTED):
        nights.night(ROWS[::4], of=lambda name: name == "qwen")
    assert [each.judge for each in find_changed_judges(nights.last)] == ["qwen"]


def test_a_run_without_an_anchor_asked_nothing_again() -> None:
    assert find_changed_judges(None) == ()


@pytest.mark.simulation
def test_an_unchanged_judge_is_not_told_in_a_year() -> None:
    for world in QUIET:
        assert night_told(world, seed=1, nights=YEAR) is None, world


@pytest.mark.parametrize(
    "world",
    [World("", verdicts=1, noise=0.15, drift=0.1), World("", noise=0.15, drift=0.1, labels_only=False)],
    ids=["labels", "probabilities"],
)
def test_the_drift_to_be_seen_is_told_within_a_week(world: World) -> None:
    late = [night_told(world, seed, ONSET + RUNS_TESTED) for seed in range(10)]
    assert sum(night is not None and night >= ONSET for night in late) >= 8
