"""Declare the rows of a run that were asked about again, which other findings read."""

from tasks.findings.finding import Finding
from tasks.findings.on_judge import OnJudge
from tasks.findings.repeats.repeat_record import AskedAgain
from tasks.record.run_record import RunRecord


def read_second_judgments(record: RunRecord) -> dict[str, dict[str, tuple[float, float]]]:
    """Return metric -> row id -> the score of a row of a run and the one when it was judged again.

    Metrics are left out if parts of their scores are texts of the judge, which are not asked for again.
    """
    again = record.find(AskedAgain) or AskedAgain()
    return {metric: again.scores[metric] for metric in again.variance if metric in again.scores}


FINDING = Finding(record=(AskedAgain,), on_judge=OnJudge(second_judgments=read_second_judgments))
