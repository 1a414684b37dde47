"""Name the incidents that stay open when the deployment that would end them is removed."""

from collections.abc import Iterator, Mapping
from typing import Any

from deployments.registry.changes import AppliedChanges, Change
from metric_core.errors import AssayError
from tasks.history.incident_log import IncidentLog
from tasks.history.run_entry import evaluation_name


def find_open_incidents(config: Mapping[str, Any]) -> Iterator[AppliedChanges]:
    """Yield the open incidents of a deployment's evaluation, each with what ends it.

    Args:
        config: Configuration of the deployment.
    """
    name = evaluation_name(config.get("name"), "", config.get("source"))
    try:
        found = IncidentLog(config.get("history")).open_incidents(name)
    except AssayError as error:
        yield AppliedChanges("incident", name, Change.UNCHANGED, f"it is not known which ones are open: {error}")
        return
    for each in found:
        advice = f"no run will end it: assay alert close '{name}' '{each.key}' --config FILE"
        yield AppliedChanges("incident", f"{name}/{each.key}", Change.UNCHANGED, advice)
