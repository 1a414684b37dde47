"""`assay serve`: run schedules and events on this machine, with the local Prefect server and a worker."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Annotated

import typer

from deployments.cli._support.console import stderr
from deployments.cli._support.options import with_config_except
from deployments.cli._support.verb import VerbGroup
from deployments.cli.deploy import Cron, Interval, Suffix, print_changes, with_schedule
from deployments.local_server import start_server, use_server
from flows.config.run_config import RunConfig
from flows.planning.checks import run_checks
from flows.planning.planner import plan_without_data
from tasks.runtime.credentials import mask_url
from tasks.runtime.home import assay_home
from tasks.runtime.log_format import QUIET_HANDLERS

if TYPE_CHECKING:
    from uuid import UUID

    from prefect.client.orchestration import SyncPrefectClient

    from deployments.registry.changes import AppliedChanges

app = VerbGroup()

POOL = "rag-assay-serve"
_QUERY_SECONDS = "2"
_STOP_SECONDS = 20.0


@app.command()
@with_config_except("name")  # here, --name is the suffix of the deployments
def serve(
    config: RunConfig,
    cron: Cron = None,
    interval: Interval = None,
    name: Suffix = "",
    concurrency: Annotated[int, typer.Option("--concurrency", min=1, help="Maximum number of concurrent runs.")] = 2,
) -> None:
    """Run evaluations on schedules and events until interrupted."""
    interrupts = Interrupts()
    interrupts.install()
    scheduled = with_schedule(config, cron, interval)
    os.environ.setdefault("PREFECT_LOGGING_LEVEL", "WARNING")
    for check in run_checks(plan_without_data(scheduled), with_data=False):
        check.check()
    from deployments.registry.checks import check_deployment
    from deployments.registry.specs import name_suffix, plan_deployments

    plan = plan_deployments(scheduled, name_suffix(name))
    check_deployment(plan, is_here=True)
    starting = start_server(assay_home())
    with use_server(server := starting.wait()):
        from deployments.registry.apply import DeploymentTarget, apply
        from deployments.registry.service_log import follow_events

        place = DeploymentTarget(
            pool=POOL,
            pool_type="process",
            job_variables={"working_dir": str(Path.cwd()), "env": QUIET_HANDLERS},
            log_format=scheduled.log_format,
        )
        done = apply(plan, place)
        print_changes(done, as_json=False)
        where = mask_url(server.url)
        others = "" if server.credentials is None else "; `assay server env` prints what other programs need to use it"
        stderr.print(
            f"serving on {where}{others}. Press Ctrl-C to stop.",
        )
        with _running_schedules(done) as deployments, follow_events(deployments, stderr.print):
            code = _run_worker(concurrency, interrupts)
    if code:
        stderr.print(f"the worker ended with exit code {code}")
        raise typer.Exit(1)


@contextmanager
def _running_schedules(done: "Sequence[AppliedChanges]") -> "Iterator[Sequence[UUID]]":
    """Run the schedules until the block ends; pause them then, so that runs without a worker do not pile up.

    Yields the ids of all deployments.

    A process that was killed could not pause them, so overdue runs are deleted first. Runs that are missing are not
    reported while nothing is to run.
    """
    from prefect.client.orchestration import get_client

    from deployments.registry.automations import pause_reports

    names = {each.name: each.detail.startswith(("cron", "every")) for each in done if each.kind == "deployment"}
    with get_client(sync_client=True) as client:
        deployments = {name: client.read_deployment_by_name(name) for name in names}
        scheduled = [deployments[name] for name, is_scheduled in names.items() if is_scheduled]
        _delete_missed_runs(client, [each.id for each in scheduled])
        try:
            yield [each.id for each in deployments.values()]
        finally:
            for each in scheduled:
                pause_reports(client, each.name)
                client.pause_deployment(each.id)


def _delete_missed_runs(client: "SyncPrefectClient", deployments: "Sequence[UUID]") -> None:
    """Delete the scheduled runs that are overdue and have not started."""
    from prefect.client.schemas.filters import DeploymentFilter, FlowRunFilter

    if not deployments:  # an empty filter would match all deployments
        return
    waiting = client.read_flow_runs(
        flow_run_filter=FlowRunFilter.model_validate({"state": {"type": {"any_": ["SCHEDULED"]}}}),
        deployment_filter=DeploymentFilter.model_validate({"id": {"any_": list(deployments)}}),
    )
    for run in waiting:
        due = run.expected_start_time
        if run.auto_scheduled and run.run_count == 0 and due is not None and due < datetime.now(UTC):
            client.delete_flow_run(run.id)


@dataclass(slots=True)
class Interrupts:
    """Handle Ctrl-C and SIGTERM: the first stops the worker and its runs, the second kills it.

    A background process of a shell begins with SIGINT ignored, and so would its worker, which sends itself that signal
    to stop. A process with a handler passes on the default instead; so the handler must be there before the worker is.
    """

    is_stopped: bool = False
    _worker: subprocess.Popen[bytes] | None = None
    _is_starting: bool = False

    def install(self) -> None:
        """Handle the signals from now on."""
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, self._handle)

    def start(self, command: Sequence[str], environment: Mapping[str, str]) -> subprocess.Popen[bytes]:
        """Start the worker that the next signals stop."""
        self._is_starting = True
        self._worker = subprocess.Popen(command, env=environment, start_new_session=True)  # noqa: S603
        self._is_starting = False
        if self.is_stopped:
            self._stop(self._worker)
        return self._worker

    def _handle(self, _number: int, _frame: FrameType | None) -> None:
        is_first, self.is_stopped = not self.is_stopped, True
        if self._is_starting:
            return
        if self._worker is None:
            raise KeyboardInterrupt
        if is_first:
            with suppress(RuntimeError):  # the signal interrupted another write to stderr
                stderr.print("stopping; runs in progress are stopped too. Press Ctrl-C again to exit at once")
        self._stop(self._worker)

    def _stop(self, worker: subprocess.Popen[bytes]) -> None:
        worker.send_signal(signal.SIGTERM)  # a second SIGTERM kills Prefect's worker


def _run_worker(concurrency: int, interrupts: Interrupts) -> int:
    """Run a worker until a signal stops it and its runs; a second signal kills it.

    Returns:
        The exit code of a worker that ended on its own; 0 for one that was stopped.
    """
    command = [sys.executable, "-m", "prefect", "worker", "start", "--pool", POOL, "--type", "process"]
    environment = {"PREFECT_WORKER_QUERY_SECONDS": _QUERY_SECONDS} | os.environ
    worker = interrupts.start([*command, "--limit", str(concurrency)], environment)
    try:
        code = worker.wait()
        return 0 if interrupts.is_stopped else code
    finally:
        if worker.poll() is None:
            worker.kill()
            worker.wait(_STOP_SECONDS)
