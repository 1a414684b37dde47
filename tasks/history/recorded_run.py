"""Define the records of the history: runs with their metrics, and what changed from one run to the next."""

import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any, Literal

from tasks.record.findings import Findings
from tasks.record.outcome import RunOutcome, Trigger

SYSTEM, INDEX, DATA, JUDGE, JUDGES, SERVED, JUDGED, PROMPTS, ASKED, EMBEDDER, ANSWERS, SOFTWARE, FORMULAS, CERTIFIED = (
    *("system", "index", "data", "judge", "judges", "judge_server", "judge_answers", "prompts", "judge_settings"),
    *("embedder", "answers", "rag_assay", "formulas", "judge_certificate"),
)
"""Keys of the versions of a run; see `RecordedRun`."""

CHANGES = (SYSTEM, INDEX, DATA, JUDGE, SERVED, JUDGED, CERTIFIED, PROMPTS, ASKED, EMBEDDER, FORMULAS, SOFTWARE)
"""Versions whose changes are entries of the history, in order of display. Answers change with every run."""

COMPLETED, FAILED, STOPPED, MISSED = "completed", "failed", "stopped", "missed"
"""Statuses of runs."""

STARTED = (COMPLETED, FAILED, STOPPED)
"""Statuses of runs that took place, whether or not they have results."""

_LONGEST_ID = 64

_MEASURES = (DATA, JUDGE, SERVED, JUDGED, PROMPTS, ASKED, EMBEDDER, FORMULAS)
"""Versions of what measures, as opposed to what is measured."""


@dataclass(frozen=True, slots=True)
class RecordedMetric:
    """A metric of a recorded run, over all rows or over a slice.

    Args:
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
class KeptQuestions:
    """The rows that a run shares with the one before it, whose questions are not all the same.

    Args:
        run_id: Id of the run before.
        created: Start of the run before, as ISO 8601.
        rows: Number of rows of both runs with the same question and reference.
        changed: Number of rows of both runs with another question or reference.
        gone: Number of rows that only the run before has.
        retired: Number of these that are retired questions from the index.
        new: Number of rows that the run before lacks.
        figures: Metric, or key points that a part of the system lost -> mean or count over the rows of both with the
            same question and reference, in the run before and in this one.
    """

    run_id: str
    created: str
    rows: int
    changed: int
    gone: int
    retired: int
    new: int
    figures: Mapping[str, Sequence[int | float]]


class RunDetails(Findings):
    """Parts of the summary and the record of a run that are kept for later, and what is known of it besides.

    Args:
        undelivered: Sentences on recipients that had not accepted all messages of a run without an outcome.
        kept_questions: Rows that the run shares with the one before, if some of its questions are others.
        kept_unknown: Sentence on why it is not known whether it shares rows; empty if it is.
    """

    undelivered: tuple[str, ...] = ()
    kept_questions: KeptQuestions | None = None
    kept_unknown: str = ""


@dataclass(frozen=True, slots=True)
class RecordedRun:
    """A run in the history.

    Args:
        created: Time at which the run started; of a missed run that at which it was due.
        folder: Run folder, on the machine that wrote it; empty if the run was missed, or failed before it had one.
        status: `completed`, `failed`, `stopped` because its budget was spent, or `missed`.
        reason: Reason why it did not finish; empty if the run finished. A completed run has one if the monitored run
            that evaluated it failed afterwards, so that nothing was compared.
        deployment: Name of the deployment; empty for a run that was started manually.
        bad_rows: Number of rows that were left out because they are bad.
        versions: Versions of what takes part, as text, by SYSTEM, INDEX and so on; unknown ones are absent. PROMPTS
            and ASKED are mappings from the kind of a judge question to a digest: of the prompt, and of everything that
            determines the answers. JUDGES is a mapping from the group of questions to its judge.
        failures: Sentences on metrics with too many failed cells.
        metrics: Metrics over all rows, then over slices.
        outcome: Gate, alarms and incidents of a monitored run; None of another run.
        details: Further content of its summary and its record that is kept for later.
        trigger: Cause of a monitored run; empty for another run.
        due: Time at which a monitored run was due; None if that is not known. Runs of an evaluation that were due at
            the same time are one run.
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
    outcome: RunOutcome | None = None
    details: RunDetails = field(default_factory=RunDetails)
    trigger: Trigger | Literal[""] = ""
    due: datetime | None = None

    @classmethod
    def without_results(  # noqa: PLR0913, PLR0917 the fields of an entry
        cls,
        run_id: str,
        name: str,
        created: datetime,
        status: Literal["failed", "missed"],
        reason: str,
        trigger: Trigger,
        due: datetime | None = None,
    ) -> "RecordedRun":
        """Return the entry of a monitored run without a run folder: it was missed, could not start, or failed early.

        Args:
            run_id: Id of its flow run, or `missed_run_id` if the server has none.
            created: Time at which it started, or was due if it did not start.
            status: `failed`, or `missed` if it did not start although it was due.
            due: Time at which it was due; None means `created`.
        """
        return cls(run_id, name, created, "", status, reason, trigger=trigger, due=due or created)

    @property
    def has_result(self) -> bool:
        """Whether the run did what it was for: it finished, enough of its cells have scores, and it was judged."""
        return self.status == COMPLETED and not self.failures and not self.reason

    @property
    def undelivered(self) -> tuple[str, ...]:
        """Sentences on recipients that had not accepted all messages when a monitored run ended."""
        return self.details.undelivered if self.outcome is None else self.outcome.undelivered

    @property
    def kept(self) -> KeptQuestions | None:
        """The rows that the run shares with the one before; None if the questions are the same, or none is shared."""
        return self.details.kept_questions

    def metric(self, key: str, slice_column: str = "", value: str = "") -> RecordedMetric | None:
        """Return a metric of the run; None if the run does not have it.

        Args:
            slice_column: Column of the slice; empty for all rows.
            value: Value of the column.
        """
        wanted = (key, slice_column, value)
        return next((each for each in self.metrics if (each.metric, each.slice_column, each.slice) == wanted), None)


def missed_run_id(name: str, due: datetime) -> str:
    """Return the id of a missed run that has no flow run.

    Args:
        name: Name of the evaluation; a long one is replaced by its digest.

    >>> missed_run_id("support", datetime(2026, 11, 18, 6, tzinfo=UTC))
    'missed-support-20261118T060000Z'
    """
    time = f"{due.astimezone(UTC):%Y%m%dT%H%M%SZ}"
    run_id = f"missed-{name}-{time}"
    return run_id if len(run_id) <= _LONGEST_ID else f"missed-{hashlib.sha256(name.encode()).hexdigest()[:16]}-{time}"


@dataclass(frozen=True, slots=True)
class VersionChange:
    """A version that differs between two runs.

    Args:
        what: Key of the version, such as JUDGE.
        before: Earlier version as text; of prompts and formulas, that of rag-assay, which they come with.
        after: Later version as text.
        kinds: Kinds of questions whose prompts changed.
        is_comparable: True for another version of rag-assay with equal prompts, judge and formulas.
        kept: The rows that both runs share, if questions or references changed and this is known.
    """

    what: str
    before: str
    after: str
    kinds: tuple[str, ...] = ()
    is_comparable: bool = False
    kept: KeptQuestions | None = None


def find_changes_between(runs: Iterable[RecordedRun]) -> dict[str, tuple[VersionChange, ...]]:
    """Return the versions that differ from those of the run before, by the id of each run but the first.

    A version that a run does not know, such as the questions of one that failed, is that of the last run that knows it.

    Args:
        runs: Runs, oldest first; those without versions are left out.
    """
    found: dict[str, tuple[VersionChange, ...]] = {}
    before: RecordedRun | None = None
    for run in runs:
        if not run.versions:
            continue
        if before is not None:
            found[run.run_id] = find_version_changes(before, run)
        before = run if before is None else replace(run, versions={**before.versions, **run.versions})
    return found


def find_version_changes(earlier: RecordedRun, later: RecordedRun) -> tuple[VersionChange, ...]:
    """Return the versions that differ between two runs; a version that one of them does not know does not count.

    A judge that is asked about other metrics is the same judge: only the kinds of questions of both runs count.

    >>> from datetime import UTC
    >>> start = datetime(2026, 3, 1, tzinfo=UTC)
    >>> first = RecordedRun("1", "nightly", start, "", "completed", versions={"judge": "llama 1", "system": "1.4"})
    >>> second = RecordedRun("2", "nightly", start, "", "completed", versions={"judge": "llama 2"})
    >>> find_version_changes(first, second) == (VersionChange("judge", "llama 1", "llama 2"),)
    True
    """
    changes = _changes(earlier.versions, later.versions)
    return tuple(replace(change, kept=later.kept) if change.what == DATA else change for change in changes)


def _changes(old: Mapping[str, Any], new: Mapping[str, Any]) -> Iterator[VersionChange]:
    named: set[str] = set()
    software = (str(old.get(SOFTWARE) or ""), str(new.get(SOFTWARE) or ""))
    for what in CHANGES:
        before, after = old.get(what), new.get(what)
        if not before or not after:
            continue
        if what == JUDGE and old.get(JUDGES) and new.get(JUDGES):
            before, after = _changed_judges(old[JUDGES], new[JUDGES])
        if isinstance(before, Mapping) and isinstance(after, Mapping):
            kinds = tuple(sorted(kind for kind in before.keys() & after.keys() if before[kind] != after[kind]))
            # Another model or other prompts are other settings too: they are named once.
            if kinds and (what == PROMPTS or named.isdisjoint({JUDGE, SERVED, PROMPTS})):
                named.add(what)
                is_named = what == PROMPTS
                earlier, later = software if is_named else ("", ", ".join(kinds))
                yield VersionChange(what, earlier, later, kinds if is_named else ())
        elif before != after and not (what in (SERVED, JUDGED) and not named.isdisjoint({JUDGE, SERVED})):
            named.add(what)
            earlier, later = software if what == FORMULAS else (str(before), str(after))
            known = all(versions.get(key) for versions in (old, new) for key in (PROMPTS, FORMULAS))
            same = what == SOFTWARE and known and named.isdisjoint({*_MEASURES})
            yield VersionChange(what, earlier, later, is_comparable=same)


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
