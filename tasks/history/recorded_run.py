"""Records of the history: runs with their metrics, and what changed from one run to the next."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from tasks.runs.outcome import Outcome

SYSTEM, INDEX, DATA, JUDGE, JUDGES, SERVED, JUDGED, PROMPTS, ASKED, EMBEDDER, ANSWERS, SOFTWARE = (
    *("system", "index", "data", "judge", "judges", "judge_server", "judge_answers", "prompts", "judge_settings"),
    *("embedder", "answers", "rag_assay"),
)
"""Keys of the versions of a run; see `RecordedRun`."""

CHANGES = (SYSTEM, INDEX, DATA, JUDGE, SERVED, JUDGED, PROMPTS, ASKED, EMBEDDER, SOFTWARE)
"""Versions whose changes are entries of the history, in order of display. Answers change with every run."""


@dataclass(frozen=True, slots=True)
class RecordedMetric:
    """A metric of a recorded run, over all rows or over a slice.

    Args:
        metric: Key of the metric.
        direction: `higher` or `lower`: which scores are better.
        mean: Mean score; None without scored cells.
        low: Lower end of the interval of the mean; None without an interval.
        high: Upper end of the interval.
        scored: Number of cells with a value.
        undefined: Number of cells with nothing to measure.
        failed: Number of cells that failed.
        deviation: Standard deviation of the scores.
        bounds: Range of the metric; None if it has none.
        slice_column: Column of the slice; empty for all rows.
        slice: Value of the column; empty for all rows.
    """

    metric: str
    direction: str
    mean: float | None
    low: float | None
    high: float | None
    scored: int
    undefined: int
    failed: int
    deviation: float | None = None
    bounds: tuple[float, float] | None = None
    slice_column: str = ""
    slice: str = ""


@dataclass(frozen=True, slots=True)
class RunCost:
    """The cost of a run.

    Args:
        seconds: Wall time of the run before its report was written; None if the run did not finish.
        judge_seconds: Seconds that models worked, summed over requests that ran at the same time.
        questions: Distinct questions to the models.
        stored: Questions whose answers were cached.
        requests: Requests sent to servers, with retries.
        prompt_tokens: Tokens sent.
        output_tokens: Tokens generated.
    """

    seconds: float | None = None
    judge_seconds: float = 0.0
    questions: int = 0
    stored: int = 0
    requests: int = 0
    prompt_tokens: int = 0
    output_tokens: int = 0


@dataclass(frozen=True, slots=True)
class RecordedRun:
    """A run in the history.

    Args:
        run_id: Id of the run.
        name: Name of the evaluation.
        created: Time at which the run started.
        folder: Run folder, on the machine that wrote it; empty if the run failed before it had one.
        status: `completed`, `failed`, or `stopped` because its budget was spent.
        reason: Reason why it did not finish; empty if the run finished.
        source: Data that were evaluated.
        deployment: Name of the deployment; empty for a run that was started by hand.
        rows: Number of evaluated rows.
        bad_rows: Number of rows that were left out because they are bad.
        versions: Versions of what takes part, as text, by SYSTEM, INDEX and so on; unknown ones are absent. PROMPTS
            and ASKED are mappings from the kind of a judge question to a digest: of the prompt, and of everything that
            determines the answers. JUDGES is a mapping from the group of questions to its judge.
        cost: Cost of the run.
        failures: Sentences on metrics of which too many cells failed.
        metrics: Metrics over all rows, then over slices.
        outcome: Gate, alarms and incidents of a monitored run; None of another run.
        details: Further content of summary.json and run.json that is kept for later: diagnosis counts, the cost in
            money, and the like.
    """

    run_id: str
    name: str
    created: datetime
    folder: str
    status: str
    reason: str = ""
    source: str = ""
    deployment: str = ""
    rows: int = 0
    bad_rows: int = 0
    versions: Mapping[str, Any] = field(default_factory=dict)
    cost: RunCost = RunCost()
    failures: tuple[str, ...] = ()
    metrics: tuple[RecordedMetric, ...] = ()
    outcome: Outcome | None = None
    details: Mapping[str, Any] = field(default_factory=dict)

    @property
    def money(self) -> float | None:
        """The price of the judge's work; None if it has none."""
        return (self.details.get("cost") or {}).get("total")

    def metric(self, key: str, slice_column: str = "", value: str = "") -> RecordedMetric | None:
        """Return a metric of the run; None if the run does not have it.

        Args:
            key: Key of the metric.
            slice_column: Column of the slice; empty for all rows.
            value: Value of the column.
        """
        wanted = (key, slice_column, value)
        return next((each for each in self.metrics if (each.metric, each.slice_column, each.slice) == wanted), None)


@dataclass(frozen=True, slots=True)
class VersionChange:
    """A version that differs between two runs.

    Args:
        what: Key of the version, such as JUDGE.
        before: Earlier version as text.
        after: Later version as text.
    """

    what: str
    before: str
    after: str


def find_version_changes(earlier: RecordedRun, later: RecordedRun) -> tuple[VersionChange, ...]:
    """Return the versions that differ between two runs; a version that one of them does not know is no difference.

    A judge that is asked about other metrics is the same judge: only the kinds of questions of both runs count.

    Args:
        earlier: First run.
        later: Second run.

    >>> from datetime import UTC
    >>> start = datetime(2026, 3, 1, tzinfo=UTC)
    >>> first = RecordedRun("1", "nightly", start, "", "completed", versions={"judge": "llama 1", "system": "1.4"})
    >>> second = RecordedRun("2", "nightly", start, "", "completed", versions={"judge": "llama 2"})
    >>> find_version_changes(first, second)
    (VersionChange(what='judge', before='llama 1', after='llama 2'),)
    """
    return tuple(_changes(earlier.versions, later.versions))


def _changes(old: Mapping[str, Any], new: Mapping[str, Any]) -> Iterator[VersionChange]:
    told: set[str] = set()
    for what in CHANGES:
        before, after = old.get(what), new.get(what)
        if not before or not after:
            continue
        if what == JUDGE and old.get(JUDGES) and new.get(JUDGES):
            before, after = _changed_judges(old[JUDGES], new[JUDGES])
        if isinstance(before, Mapping) and isinstance(after, Mapping):
            kinds = sorted(kind for kind in before.keys() & after.keys() if before[kind] != after[kind])
            # Another model or other prompts are other settings too: they are told once.
            if kinds and told.isdisjoint({JUDGE, SERVED, PROMPTS}):
                told.add(what)
                yield VersionChange(what, "", ", ".join(kinds))
        elif before != after and not (what in (SERVED, JUDGED) and not told.isdisjoint({JUDGE, SERVED})):
            told.add(what)
            yield VersionChange(what, str(before), str(after))


def _changed_judges(old: Mapping[str, str], new: Mapping[str, str]) -> tuple[str, str]:
    """Return the judges of the groups of questions whose judge changed; groups are named unless all changed alike.

    >>> _changed_judges({"verdicts": "a", "writing": "b"}, {"verdicts": "c", "writing": "b"})
    ('a (verdicts)', 'c (verdicts)')
    >>> _changed_judges({"verdicts": "a", "writing": "a"}, {"verdicts": "b", "ratings": "b"})
    ('a', 'b')
    """
    both = [group for group in old if group in new]
    changed = [group for group in both if old[group] != new[group]]
    if changed == both and len({(old[group], new[group]) for group in changed}) == 1:
        return old[changed[0]], new[changed[0]]
    before, after = (", ".join(f"{judges[group]} ({group})" for group in changed) for judges in (old, new))
    return before, after
