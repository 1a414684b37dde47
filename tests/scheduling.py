"""The order in which workers take up files: slow ones first, so that none is left for the end alone."""

from xdist.scheduler import LoadFileScheduling  # type: ignore[import-untyped]

WHOLE_SERVER = "tests/deployments/served"
"""In whose name one worker gets all files that need a whole Prefect server, which starts once then."""

LOCAL_SERVER = "tests/deployments/local_server"
"""In whose name one worker gets all files whose tests use a local Prefect server; another one would start a second."""

SLOW = (
    WHOLE_SERVER,
    LOCAL_SERVER,
    "tests/engine/test_properties.py",
    "tests/deployments/registry/test_watch_triggers.py",
    "tests/flows/findings/anchor/test_judge_changes.py",
    "tests/deployments/local_server/test_server_address.py",
    "tests/flows/monitoring/test_lost_data.py",
    "tests/tasks/cache/test_faults.py",
    "tests/flows/test_rerun.py",
    "tests/properties/test_common.py",
    "tests/flows/findings/anchor/test_anchor.py",
    "tests/flows/test_asked.py",
    "tests/flows/test_calibrate.py",
    "tests/flows/findings/robustness/test_second_judge.py",
    "tests/deployments/cli/test_hostile_text.py",
    "tests/metric_core/statistics/test_simulations.py",
    "tests/deployments/public/test_installed.py",
    "tests/deployments/cli/test_monitor.py",
    "tests/deployments/public/test_packages.py",
    "tests/metric_core/calibration/test_calibrate.py",
    "tests/faults/test_tables.py",
    "tests/flows/alerting/test_outbox.py",
    "tests/tasks/models/judges/verifiers/test_served.py",
    "tests/tasks/cache/test_processes.py",
    "tests/flows/test_judging.py",
    "tests/tasks/processes/test_launching.py",
)
"""Slowest first."""

SHARED = {
    WHOLE_SERVER: (
        "tests/deployments/served/test_chain_after_rebuild.py",
        "tests/deployments/served/test_chain_checks_index.py",
        "tests/deployments/served/test_compose.py",
        "tests/deployments/served/test_index_rebuilt.py",
        "tests/deployments/served/test_replay.py",
        "tests/deployments/served/test_reruns.py",
        "tests/deployments/served/test_silence.py",
        "tests/deployments/served/test_watch.py",
        "tests/faults/test_killed_by_worker.py",
    ),
    LOCAL_SERVER: (
        "tests/deployments/cli/test_run.py",
        "tests/deployments/github/test_action.py",
        "tests/deployments/local_server/test_protection.py",
        "tests/deployments/public/test_pytest_plugin.py",
        "tests/deployments/registry/test_specs.py",
        "tests/deployments/served/test_serve.py",
        "tests/examples/test_additions.py",
        "tests/examples/test_finding_removals.py",
        "tests/examples/test_removals.py",
        "tests/faults/test_judge_server.py",
        "tests/faults/test_killed.py",
        "tests/faults/test_secrets.py",
        "tests/flows/alerting/test_recipients.py",
        "tests/flows/execution/test_deployed_parameters.py",
        "tests/flows/index_events/test_debounce.py",
        "tests/flows/monitoring/test_chain.py",
        "tests/flows/monitoring/test_missed_runs.py",
        "tests/flows/monitoring/test_reporter.py",
        "tests/flows/test_compare.py",
        "tests/flows/test_evaluate.py",
        "tests/flows/test_index_rebuilt.py",
        "tests/flows/test_resume_crashed.py",
        "tests/scale/test_workers.py",
        "tests/tasks/engine/test_concurrency_limits.py",
        "tests/tasks/prefect_support/test_first_state.py",
        "tests/tasks/prefect_support/test_own_runs.py",
        "tests/tasks/prefect_support/test_patience.py",
    ),
}
"""The files that share a server, by the name of what one worker gets."""

_SCOPES = {file: scope for scope, files in SHARED.items() for file in files}


def find_scope(file: str) -> str:
    """Return what one worker gets as a whole: a file, or the files that share a server.

    >>> find_scope("tests/flows/test_rerun.py"), find_scope("tests/faults/test_killed_by_worker.py")
    ('tests/flows/test_rerun.py', 'tests/deployments/served')
    """
    return _SCOPES.get(file, file)


def find_rank(file: str) -> int:
    """Return the place of a file in the order."""
    scope = find_scope(file)
    return SLOW.index(scope) if scope in SLOW else len(SLOW)


class SlowFirst(LoadFileScheduling):  # type: ignore[misc]
    """Distribute files as `--dist loadfile` does, but keep those together that share a server."""

    def _split_scope(self, nodeid: str) -> str:
        return find_scope(super()._split_scope(nodeid))
