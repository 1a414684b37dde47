"""Find incidents of the judge by the anchor of a monitored run."""

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime

from tasks.findings.anchor.anchor_record import AnchorRecord, repeat_of
from tasks.findings.repeats.judge_drift import find_changed_judges
from tasks.record.findings import Findings
from tasks.record.outcome import OutcomeIncident
from tasks.record.run_record import RunRecord

_LEAST_COLLAPSED = 3.0
"""Least number of rows whose scores became the extreme one, so that it is not chance."""


def find_judge_incidents(record: RunRecord, runs: Sequence[Findings]) -> list[OutcomeIncident]:
    """Return the judges that have changed, by the anchor rows that were asked about again, as incidents.

    A judge that is known to be another one, was therefore asked about the whole anchor again, and gives all of it one
    extreme score, is an incident too.

    Args:
        runs: Entries that the history keeps of earlier runs of the evaluation, oldest first.
    """
    changed = [
        OutcomeIncident(
            key=f"judge:{each.judge}",
            kind="judge",
            sentence=each.change.sentence,
            since=datetime.fromisoformat(each.change.since),
            run_id=record.run_id,
        )
        for each in find_changed_judges(repeat_of(record))
        if each.change is not None
    ]
    anchor = record.find(AnchorRecord)
    return changed or ([] if anchor is None else list(_find_collapsed(anchor, record.run_id, runs)))


def _find_collapsed(anchor: AnchorRecord, run_id: str, runs: Sequence[Findings]) -> Iterator[OutcomeIncident]:
    """Yield an incident for each metric by which all anchor rows have the same score, though they had others before."""
    earlier = [run.find(AnchorRecord) for run in runs]
    same = [each.metrics for each in earlier if each is not None and each.digest == anchor.digest]
    for metric, now in anchor.metrics.items():
        means = [metrics[metric].mean for metrics in same if metric in metrics]
        usual = next((mean for mean in reversed(means) if mean not in (None, 0.0, 1.0)), None)
        if now.mean is None or now.mean not in (0.0, 1.0) or usual is None:
            continue
        if abs(usual - now.mean) * now.scored >= _LEAST_COLLAPSED:
            sentence = (
                f"the judge gives all {now.scored} rows of the anchor the same {metric}, {now.mean:g}, where "
                f"their mean was {usual:.3f}: its scores say nothing about the system. Look at the server of the "
                "judge; do not accept this run"
            )
            yield OutcomeIncident(
                key=f"judge:{metric}", kind="judge", sentence=sentence, since=datetime.now(UTC), run_id=run_id
            )
