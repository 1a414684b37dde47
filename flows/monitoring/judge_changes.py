"""Find judges that answer otherwise than they did although they kept their names."""

from datetime import datetime
from pathlib import Path

from tasks.runs.finished_run import FinishedRun
from tasks.runs.judge_watch import read_findings, standing_changes
from tasks.runs.outcome import OutcomeIncident


def find_judge_incidents(folder: Path, run_id: str) -> list[OutcomeIncident]:
    """Return the judges that answer otherwise by the anchor rows that were asked about again, as incidents.

    Args:
        folder: Run folder.
        run_id: Id of the run.

    Raises:
        RunFolderError: The run folder is damaged.
    """
    return [
        OutcomeIncident(
            key=f"judge:{each['judge']}",
            kind="judge",
            sentence=each["told"]["sentence"],
            since=datetime.fromisoformat(each["told"]["since"]),
            run_id=run_id,
        )
        for each in standing_changes(read_findings(FinishedRun(folder).manifest))
    ]
