"""Read the scores of a second judge that a run has of its rows, and of those of its baseline."""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass

from metric_core.statistics.robustness import SecondOpinion
from metric_core.statistics.second_judge import SecondScores
from tasks.comparison.run_pair import RunPair
from tasks.findings.robustness.second_judge_record import SecondJudgeRecord


@dataclass(frozen=True, slots=True)
class SecondVerdicts:
    """Scores of a second judge.

    Args:
        judge: Name of the judge.
        scores: Metric -> scores of rows.
        chosen: Metric -> rows that it was asked about.
    """

    judge: str
    scores: Mapping[str, SecondScores]
    chosen: Mapping[str, frozenset[str]]

    def give_opinion(
        self, metrics: Sequence[str], is_other: Callable[[], bool], rows: Collection[str] | None = None
    ) -> SecondOpinion | None:
        """Return an opinion about an outcome; None without a score that counts for it.

        Args:
            metrics: Metrics that the outcome is about.
            is_other: Function that returns whether the outcome is another with the scores.
            rows: Rows that count; None for all.
        """
        asked = {row for metric in metrics for row in self.chosen.get(metric, ()) if rows is None or row in rows}
        scored = {row for metric in metrics for row in self.scores.get(metric, ())} & asked
        if not scored:
            return None
        return SecondOpinion(self.judge, len(scored), len(asked - scored), is_other())


def read_second_verdicts(pair: RunPair) -> SecondVerdicts | None:
    """Return the scores of a second judge for two runs, or for one; None without any for these."""
    found = pair.b.run.record.find(SecondJudgeRecord)
    if found is None or found.reason is not None or not found.rows:
        return None
    if pair.a is not None and pair.a.run.run_id != found.baseline:
        return None
    ids_before = {} if pair.a is None else pair.a.row_ids
    scores: dict[str, dict[str, tuple[float | None, float]]] = {}
    for metric, after in found.after.items():
        before = found.before.get(metric, {})
        for row, value in after.items():
            if (name := pair.b.keys.get(row)) is not None:
                first = before.get(ids_before.get(name, ""))
                if name not in ids_before or first is not None:
                    scores.setdefault(metric, {})[name] = (first, value)
    chosen = {
        metric: frozenset(pair.b.keys[row] for row in rows if row in pair.b.keys)
        for metric, rows in found.chosen.items()
    }
    return SecondVerdicts(found.judge, {metric: scores.get(metric, {}) for metric in chosen}, chosen)


def describe_second_judge(pair: RunPair) -> str | None:
    """Return what the second judge of a run was asked, in words; None if the run has none."""
    found = pair.b.run.record.find(SecondJudgeRecord)
    if found is None:
        return None
    if pair.a is not None and pair.a.run.run_id != found.baseline and found.reason is None:
        why = "without a baseline" if found.baseline is None else "with another baseline"
        return f"no verdicts of a second judge are stored for this comparison: the run was evaluated {why}"
    return found.sentence(pair.b.run.record.rows)
