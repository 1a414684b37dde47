"""The order in which workers take up files: slow ones first, so that none is left for the end alone."""

from xdist.scheduler import LoadFileScheduling  # type: ignore[import-untyped]

WHOLE_SERVER = "tests/deployments/served"
"""In whose name one worker gets all files that need a whole Prefect server, which starts once then."""

SLOW = (
    WHOLE_SERVER,
    "tests/metric_core/statistics/test_simulations.py",
    "tests/scale/test_engines.py",
    "tests/faults/test_secrets.py",
    "tests/engine/test_properties.py",
    "tests/faults/test_lost_server.py",
    "tests/flows/test_judge_changes.py",
    "tests/flows/test_rerun.py",
    "tests/faults/test_judge_server.py",
    "tests/deployments/local_server/test_start.py",
    "tests/flows/monitoring/test_chain.py",
    "tests/flows/monitoring/test_lost_data.py",
    "tests/flows/test_asked.py",
    "tests/faults/test_killed.py",
    "tests/flows/monitoring/test_reporter.py",
    "tests/deployments/cli/test_hostile_text.py",
    "tests/flows/test_anchor.py",
    "tests/faults/test_tables.py",
    "tests/deployments/cli/test_run.py",
    "tests/flows/test_calibrate.py",
    "tests/flows/test_index_rebuilt.py",
    "tests/properties/test_common.py",
    "tests/flows/test_evaluate.py",
    "tests/metric_core/statistics/test_further_drops.py",
    "tests/deployments/local_server/test_server_address.py",
    "tests/tasks/cache/test_faults.py",
    "tests/metric_core/calibration/test_calibrate.py",
    "tests/tasks/processes/test_launching.py",
)
"""Slowest first, but for one that needs no server: it keeps a worker busy while the first server starts."""

ON_WHOLE_SERVER = (
    "tests/deployments/served/test_chain_after_rebuild.py",
    "tests/deployments/served/test_compose.py",
    "tests/deployments/served/test_index_rebuilt.py",
    "tests/deployments/served/test_replay.py",
    "tests/deployments/served/test_reruns.py",
    "tests/deployments/served/test_silence.py",
    "tests/faults/test_killed_by_worker.py",
)


def find_scope(file: str) -> str:
    """Return what one worker gets as a whole: a file, or the files that share a server.

    >>> find_scope("tests/flows/test_rerun.py"), find_scope("tests/faults/test_killed_by_worker.py")
    ('tests/flows/test_rerun.py', 'tests/deployments/served')
    """
    return WHOLE_SERVER if file in ON_WHOLE_SERVER else file


def find_rank(file: str) -> int:
    """Return the place of a file in the order."""
    scope = find_scope(file)
    return SLOW.index(scope) if scope in SLOW else len(SLOW)


class SlowFirst(LoadFileScheduling):  # type: ignore[misc]
    """Distribute files as `--dist loadfile` does, but keep those together that share a server."""

    def _split_scope(self, nodeid: str) -> str:
        return find_scope(super()._split_scope(nodeid))
