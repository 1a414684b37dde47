"""Send the results of runs to their sinks, and keep what a sink does not accept for later runs.

The history has a message per run and sink, as for alerts: written before the results are sent, and marked once the sink
has accepted them. If a sender dies in between, they are sent again; sinks recognize them by the id of the run.
"""

import time
import uuid
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path

from flows.config.result_options import ResultOptions
from metric_core.errors import AssayError, RunFolderError
from tasks.history.message_log import AlertMessage, MessageLog
from tasks.reports.exports.sink import SinkError
from tasks.reports.exports.sinks import find_sink
from tasks.runs.run_folder import RunFolder

ABOUT = "results of runs"
"""Name under which the messages are kept, which those of all evaluations share: any run sends what waits."""

WAITING_DAYS = 14
"""Days after which results are given up whose run folder is gone; others wait until they are accepted."""

_LEASE_SECONDS = 900.0
_PATIENCE = 60.0
"""Seconds for which a run waits until another one has sent what it holds."""
_POLL_SECONDS = 0.5
_REFUSALS = 3
"""Number of refused results after which a run stops sending to a sink."""


def send_results(options: ResultOptions, folder: Path, *, later: bool = False) -> tuple[str, ...]:
    """Send the results of a finished run to the sinks of its options, with those that they lack of earlier runs.

    Args:
        folder: Run folder.
        later: True only writes down what is to be sent: a monitored run sends it once its outcome is known.

    Returns:
        A warning for each sink that lacks results: they are in their run folders all the same.
    """
    if not options.sinks:
        return ()
    content = {"folder": str(folder)}
    run_id = RunFolder(folder).read_finished_record().run_id
    sinks = {f"{name} at {address}": (name, address) for name, address in options.sinks.items()}
    try:
        log = MessageLog(options.history)
        log.put(ABOUT, [(recipient, run_id, content) for recipient in sinks], "waiting", _now())
        return () if later else tuple(warning for each in sinks.values() for warning in _deliver(log, *each))
    except AssayError:  # without a history, nothing is kept
        return () if later else tuple(_send_directly(options.sinks, folder))


def send_again(history: str | None, name: str, address: str, folder: Path) -> str:
    """Send the results of a finished run to a sink, whether or not it has them, and return what it got.

    Raises:
        AssayError: The sink does not exist or does not accept them.
    """
    sink = find_sink(name)
    sink.check(address)
    got = sink.send(address, folder)
    log, run_id = MessageLog(history), RunFolder(folder).read_finished_record().run_id
    for message in log.messages(ABOUT, [f"{name} at {address}"], state="waiting", alert_id=run_id):
        log.note_reply(message.number, got, at=_now())
    return got


def _send_directly(sinks: Mapping[str, str], folder: Path) -> Iterator[str]:
    for name, address in sinks.items():
        try:
            find_sink(name).send(address, folder)
        except Exception as error:  # noqa: BLE001 whatever the sink does, the results are in the run folder
            yield _warning(name, address, folder, f"does not have the results: {_reason(error)}. Send them by")


def _deliver(log: MessageLog, name: str, address: str) -> Iterator[str]:
    """Send a sink what waits for it, oldest first; yield a warning if something still waits, or is given up."""
    recipient, holder, deadline = f"{name} at {address}", uuid.uuid4().hex, time.monotonic() + _PATIENCE
    while (claimed := log.claim(ABOUT, recipient, holder, _LEASE_SECONDS)) is None and time.monotonic() < deadline:
        time.sleep(_POLL_SECONDS)  # another run is sending them
    refusals = 0
    try:
        for message in claimed or ():
            log.note_try(message.number, _LEASE_SECONDS)
            try:
                got, error = _send(message, name, address), None
            except Exception as raised:  # noqa: BLE001 whatever the sink does, the results are in the run folder
                got, error = _reason(raised), raised
            is_lost = isinstance(error, RunFolderError) and message.created < _now() - timedelta(days=WAITING_DAYS)
            log.note_reply(message.number, got, at=_now() if error is None or is_lost else None)
            if is_lost:
                yield f"{recipient} never got the results of a run: {got}"
            refusals += error is not None and not isinstance(error, RunFolderError)
            if refusals >= _REFUSALS or (isinstance(error, SinkError) and not error.is_lasting):
                break
    finally:
        log.let_go(holder)
    for waiting in log.find_undelivered(ABOUT):
        if waiting.recipient == recipient:
            last = log.messages(ABOUT, [recipient], state="waiting")[-1]
            said = f"has not accepted the results of {waiting.count} {'run' if waiting.count == 1 else 'runs'} since"
            said = f"{said} {waiting.since:%Y-%m-%d %H:%M}: {waiting.reply}. The next run sends them, or"
            yield _warning(name, address, Path(last.content["folder"]), said)


def _send(message: AlertMessage, name: str, address: str) -> str:
    folder = Path(message.content["folder"])
    if RunFolder(folder).read_finished_record().run_id != message.alert_id:
        raise RunFolderError(f"another run has replaced the one in {folder}")
    return find_sink(name).send(address, folder)


def _warning(name: str, address: str, folder: Path, said: str) -> str:
    return f"{name} at {address} {said} `assay export {folder} --sink {name}={address}`"


def _reason(error: Exception) -> str:
    """Return the message of an error that is written for users; any other may hold a secret."""
    return str(error).rstrip(".") if isinstance(error, AssayError) else type(error).__name__


def _now() -> datetime:
    return datetime.now(UTC)
