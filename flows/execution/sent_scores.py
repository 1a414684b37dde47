"""Send the scores of a finished run to the OTLP endpoint of its configuration."""

from pathlib import Path

from metric_core.errors import AssayError
from tasks.reports.exports.scored_rows import read_scored_rows
from tasks.reports.exports.send_scores import Form, send_scores


def send_scores_of_run(endpoint: str, folder: Path) -> tuple[str, ...]:
    """Send the scores of a finished run as events.

    Args:
        endpoint: Base URL of the OTLP endpoint.
        folder: The run folder.

    Returns:
        A warning if it failed: the results are in the run folder all the same, and `assay export` sends them again.
    """
    try:
        send_scores(read_scored_rows(folder), endpoint, Form.EVENTS, folder.name)
    except AssayError as error:
        return (f"{error}: assay export {folder} --otlp {endpoint}",)
    return ()
