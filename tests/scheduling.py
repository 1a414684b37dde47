"""The order in which workers take up files: slow ones first, so that none is left for the end alone."""

from xdist.scheduler import LoadFileScheduling  # type: ignore[import-untyped]

WHOLE_SERVER = "tests/deployments/served"
"""In whose name one worker gets all files that need a whole Prefect server, which starts once then."""

SLOW = (
    WHOLE_SERVER,
    "tests/properties/test_common.py",
    "tests/scale/test_engines.py",
    "tests/engine/test_properties.py",
    "tests/faults/test_killed.py",
    "tests/faults/test_judge_server.py",
    "tests/faults/test_secrets.py",
    "tests/flows/test_rerun.py",
    "tests/deployments/cli/test_rerun.py",
    "tests/deployments/local_server/test_start.py",
    "tests/deployments/cli/test_run.py",
    "tests/deployments/cli/test_compare.py",
    "tests/deployments/cli/test_hostile_text.py",
    "tests/faults/test_tables.py",
    "tests/flows/test_evaluate.py",
    "tests/flows/test_index_rebuilt.py",
    "tests/metric_core/statistics/test_simulations.py",
    "tests/deployments/local_server/test_server_address.py",
    "tests/tasks/cache/test_faults.py",
    "tests/deployments/cli/test_calibrate.py",
    "tests/flows/test_calibrate.py",
    "tests/flows/test_compare.py",
    "tests/metric_core/gates/test_judge_agreement.py",
    "tests/metric_core/calibration/test_calibrate.py",
    "tests/metric_core/gates/test_checks.py",
    "tests/tasks/processes/test_launching.py",
)
"""Slowest first, but for one that needs no server: it keeps a worker busy while the first server starts."""

ON_WHOLE_SERVER = (
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
