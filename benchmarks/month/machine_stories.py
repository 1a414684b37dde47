"""Stories of faults of runs, workers, the configuration, recipients and events."""

import os
import signal
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from uuid import uuid4

import httpx
from prefect.client.orchestration import get_client
from prefect.client.schemas.filters import DeploymentFilter

from benchmarks.month.data_stories import ERROR, start
from benchmarks.month.ledger import begins, ends
from benchmarks.month.month import Nights, Worker
from benchmarks.month.receivers import OK, Fault

MISSED = "missed runs"


def process(nights: Nights, worker: Worker) -> None:
    """Play a story: a run hangs, runs are killed once and three times, the worker goes away."""
    judge = nights.config()["judge"]
    nights.options["judge"] = {**judge, "server": {**judge["server"], "timeout": 900, "unavailable_timeout": 900}}
    start(nights, quiet=4)  # the server's reports about runs that are due within five minutes of deploying come late
    nights.server.delay = 1000.0
    nights.note("a run hangs", begins("stuck"))
    nights.wait_for_message("stuck", "the report about the run that hangs")
    nights.pass_time(1.2)  # a run that is due meanwhile waits for long: the run that hung tells of it at its end
    _pass_date(nights)
    nights.server.delay = 0.0
    _kill_run(nights)
    what = "the run is killed, resumed, and tells of one that waited"
    nights.night(what, ends(MISSED, "stuck"), write=False, state="Passed")
    nights.skip_ended()
    nights.night(state="Passed")
    nights.server.delay = 1000.0  # or a run that is resumed, whose answers are kept, might end before it is killed
    nights.world.write(nights.number + 1)
    _kill_run(nights)
    nights.server.delay = 0.0
    nights.night("a run is killed, and resumed", fault=True, write=False, state="Passed")
    nights.server.delay = 1000.0
    nights.world.write(nights.number + 1)
    nights.wait(nights.running, "the run to kill")
    _set_schedule(nights, active=False)  # or another run might be killed
    for _ in range(3):
        _kill_run(nights)
    nights.server.delay = 0.0
    nights.night("a run is killed three times", begins(ERROR), fault=True, write=False, state="Error")
    _set_schedule(nights, active=True)
    nights.night("a run ends", ends(ERROR), state="Passed")
    worker.stop()
    nights.note("the worker is away for two nights", begins(MISSED))
    nights.wait_for_message(MISSED, "the report about the worker")
    nights.pass_time(1.2)
    nights.skip_ended()
    worker.start()
    nights.night("the worker is back", ends(MISSED), state="Passed")
    nights.skip_ended()
    nights.night(state="Passed")


def pause(nights: Nights) -> None:
    """Play a story: a person pauses the schedule, and forgets to resume it."""
    start(nights)
    _set_schedule(nights, active=False)
    nights.note("the schedule is paused", begins(MISSED))
    nights.wait_for_message(MISSED, "the report about the schedule")
    _set_schedule(nights, active=True)
    nights.skip_ended()
    nights.night("the schedule goes on", ends(MISSED), state="Passed")


def by_hand(nights: Nights) -> None:
    """`assay monitor` is called by cron: everything that keeps it from beginning is told."""
    world = nights.world
    world.write(1)
    call = nights.call
    call("the first night", fault=False)
    world.write(2)
    call("a quiet night", fault=False)
    world.source.unlink()
    call("by hand: the source is missing", begins(ERROR), code=3)
    world.source.write_text("", encoding="utf-8")
    call("by hand: the source is empty", begins(ERROR), code=3)
    world.write(5)
    world.source.write_text(world.source.read_text(encoding="utf-8") + "{broken\n", encoding="utf-8")
    call("by hand: a broken line", begins(ERROR), code=3)
    world.write(6, change=lambda row: {k: v for k, v in row.items() if k != "retrieved_contexts"})
    call("by hand: a column is missing", begins(ERROR), code=3)
    world.write(7)
    call("by hand: a metric is misspelt", begins(ERROR), code=2, metrics=["faithfulnes"])
    call("by hand: a metric is still misspelt", code=2, metrics=["faithfulnes"])
    call("by hand: an option is misspelt", begins(ERROR), code=2, metrics_fil="a.prom")
    call("by hand: the gate does not exist", begins(ERROR), code=2, deploy={**nights.config()["deploy"], "gate": "no"})
    call("by hand: the cache is a folder", begins(ERROR), code=2, cache=str(world.folder))
    call(
        "by hand: the judge has no address", begins(ERROR), code=2, judge={"backend": "server", "server": {"urls": []}}
    )
    call("by hand: all is well", ends(ERROR), fault=False)
    nights.server.stop()
    world.write(12)
    call("by hand: the judge is down", begins(ERROR), code=4)
    nights.server.start()
    call("by hand: the judge is back", ends(ERROR), fault=False)


def recipients(nights: Nights) -> None:
    """One of two recipients is away, or both; people silence and acknowledge."""
    hooks, mailbox, name = nights.month.hooks, nights.month.mailbox, nights.name
    nights.deploy_options["alerts"] = {
        **nights.config()["deploy"]["alerts"],
        "escalation": {"webhook": f"env:ESCALATION_{name}"},
    }
    start(nights)
    hooks.faults[name] = Fault(500)
    break_source(nights)
    nights.night("the webhook is away, and the source missing", begins(ERROR), fault=True, write=False, state="Error")
    nights.night("the webhook is away, and the source back", ends(ERROR), fault=True, state="Passed")
    break_source(nights)
    nights.night("the webhook is away for a third night", begins(ERROR), fault=True, write=False, state="Error")
    del hooks.faults[name]
    nights.night("the webhook is back", ends(ERROR), state="Passed")
    mailbox.refused = f"{name}@example.com"
    break_source(nights)
    nights.night("the mailbox is away", begins(ERROR), fault=True, write=False, state="Error")
    nights.night("it stays away", ends(ERROR), fault=True, state="Passed")
    mailbox.refused = ""
    nights.night("the mailbox is back", state="Passed")
    mailbox.refused, hooks.faults[name] = f"{name}@example.com", Fault(503)
    break_source(nights)
    nights.night("all recipients are away", begins(ERROR), fault=True, write=False, state="Error")
    mailbox.refused = ""
    del hooks.faults[name]
    nights.night("all are back", ends(ERROR), state="Passed")
    hooks.faults[name] = Fault(OK, seconds=20)
    break_source(nights)
    nights.night("the webhook is slow", begins(ERROR), fault=True, write=False, state="Error")
    del hooks.faults[name]
    nights.night("the webhook is fast", ends(ERROR), state="Passed")
    until = datetime.now(UTC) + timedelta(minutes=2.5 * nights.month.interval)
    nights.assay("alert", "silence", name, "--until", f"{until:%Y-%m-%dT%H:%M:%SZ}", "--history", nights.history)
    break_source(nights)
    nights.is_silenced = True
    nights.night("silenced: the source is missing", fault=True, write=False, state="Error")
    nights.night("silenced: the source is back", state="Passed")
    nights.is_silenced = False
    break_source(nights)
    nights.night("the silence is over", begins(ERROR), fault=True, write=False, state="Error")
    nights.assay("alert", "acknowledge", name, "--history", nights.history)
    nights.night("an acknowledged incident ends", ends(ERROR), state="Passed")


def index(nights: Nights) -> None:
    """Versions of an index are announced: worse ones, malformed ones, old ones, many at once."""
    world, folder = nights.world, nights.world.folder
    nights.deploy_options |= {"cron": None, "debounce_seconds": 2}
    world.write(1)
    nights.deploy()

    def version(number: str, **options: Any) -> None:
        world.write(1, **options)
        world.source.rename(folder / f"{number}.jsonl")
        world.write(1)

    def announce(what: str, *expected: Any, fault: bool = True, kind: str = "finished", **payload: Any) -> None:
        entry = nights.note(what, *expected, fault=fault)
        entry.mean, entry.kind = world.mean(Path(str(payload["dataset"]))), kind
        done = _ended_runs(nights)
        _send(nights, payload)
        ended = nights.wait(lambda: _ended_runs(nights)[len(done) :], f"a run about {what}")
        entry.state, entry.ended = ended[-1], datetime.now(UTC)
        nights.month.say(f"{nights.name}: {what}: {entry.state}")

    def at(number: str) -> dict[str, Any]:
        return {"index": nights.name, "version": number, "dataset": str(folder / f"{number}.jsonl")}

    version("1")
    announce("the first version", fault=False, **at("1"))
    version("2")
    announce("a good version", fault=False, **at("2"))
    world.wrong = 0.6
    version("3")
    announce("a worse version", begins(r"gate:failed:.*"), **at("3"))
    world.wrong = 0.05
    version("4")
    announce("a repaired version", ends(r"gate:failed:.*"), fault=False, **at("4"))
    version("5", rows=31)
    announce("a version without half of the rows", begins(r".*(rows|coverage).*"), **at("5"))
    version("6")
    announce("a whole version", ends(r".*(rows|coverage).*"), fault=False, **at("6"))
    announce("a version without data", begins(ERROR), kind="failed", **at("7"))
    version("8")
    announce("a version with data", ends(ERROR), fault=False, **at("8"))
    elsewhere = {**at("9"), "dataset": "s3://elsewhere/9.jsonl"}
    announce("data that lie elsewhere", begins(ERROR), kind="failed", **elsewhere)
    unnamed = {"index": nights.name, "dataset": str(folder / "8.jsonl")}
    announce("an event without a version", begins("error"), kind="", **unnamed)
    announce("an older version", kind="", **at("2"))
    announce("the same version again", ends(ERROR), **at("8"))
    version("10")
    announce("a version after all these", fault=False, **at("10"))
    _deploy_second(nights)
    version("11")
    second = nights.note("the second of two deployments", fault=False)
    announce("a version for two deployments", fault=False, **at("11"))
    second.kind, second.ended = "finished", datetime.now(UTC)
    nights.pass_time(0.3)
    nights.month.say(f"{nights.name}: {len(_ended_runs(nights))} runs of events in all")


def _deploy_second(nights: Nights) -> None:
    """Deploy a second time on the same index: nothing that was announced before concerns it."""
    nights.note("a second deployment on the same index")
    options = {**nights.deploy_options}
    Nights(
        nights.month,
        nights.name,
        nights.world,
        nights.server,
        nights.pool,
        suffix="-second",
        deploy_options=options,
    ).deploy()


def break_source(nights: Nights) -> None:
    """Take the source away."""
    nights.world.source.unlink(missing_ok=True)


def _pass_date(nights: Nights) -> None:
    """Wait until a run has just been due, so that no other one is due while a killed run is resumed."""
    time.sleep((60 * nights.at + 5 - time.time()) % (60 * nights.month.interval))


def _set_schedule(nights: Nights, *, active: bool) -> None:
    """Pause or resume the schedule."""
    with get_client(sync_client=True) as client:
        deployment = client.read_deployment_by_name(f"monitor/monitor-{nights.name}")
        client.update_deployment_schedule(deployment.id, deployment.schedules[0].id, active=active)


def _kill_run(nights: Nights) -> None:
    def process_of() -> int | None:
        run = nights.running()
        return None if run is None or run.infrastructure_pid is None else int(run.infrastructure_pid.rpartition(":")[2])

    pid = nights.wait(process_of, "the process of a run")
    time.sleep(4)
    os.killpg(pid, signal.SIGKILL)
    nights.month.say(f"{nights.name}: the run {pid} is killed")
    nights.wait(lambda: nights.running() is None, "the end of a killed run")


def _ended_runs(nights: Nights) -> list[str]:
    """Return the states of the runs of events about an index that have ended."""
    wanted = DeploymentFilter.model_validate({"name": {"like_": f"index-rebuilt-{nights.name}"}})
    with get_client(sync_client=True) as client:
        runs = client.read_flow_runs(deployment_filter=wanted, limit=200)
    ended = [each for each in runs if each.state is not None and each.state.is_final()]
    return [str(each.state and each.state.name) for each in sorted(ended, key=lambda run: run.end_time or _LONG_AGO)]


_LONG_AGO = datetime(2000, 1, 1, tzinfo=UTC)


def _send(nights: Nights, payload: dict[str, Any]) -> None:
    event = {
        "id": str(uuid4()),
        "event": "rag.index.rebuilt",
        "occurred": datetime.now(UTC).isoformat(),
        "resource": {"prefect.resource.id": f"rag.index.{nights.name}"},
        "payload": payload,
    }
    httpx.post(f"{nights.month.url}/events", json=[event], timeout=30).raise_for_status()
