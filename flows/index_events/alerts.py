"""Tells people that a version of an index was not accepted, or could not be evaluated: what got worse, where to look.

An alert goes to everybody who is named, each on a way of its own: one that can not be told does not keep the others
from hearing. Where nobody is named, or nobody can be told, it goes to a file, so that none is lost.
"""

import json
from collections.abc import Callable
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal, cast
from urllib.parse import quote

import httpx
from prefect.blocks.abstract import NotificationBlock
from prefect.blocks.core import Block
from prefect.events import emit_event
from prefect.logging import get_run_logger

from flows.config.deploy_options import AlertSettings
from tasks.runtime.credentials import read_secret
from tasks.runtime.home import assay_home

EVENT = "rag.index.alert"
"""The event that every alert is too, for automations of one's own."""

_SECONDS = 15.0
_TRIES = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Alert:
    """What there is to tell.

    Args:
        index: id of the index.
        version: the version that is not the baseline now.
        outcome: "failed" the gate, "inconclusive", or an "error".
        worse: what got worse, a sentence each; of an error, what it is.
        baseline: the version that stays the baseline.
        folder: the run folder; None where there is none.
        report: where the report is, or the comparison with the baseline.
        flow_run: id of the flow run.
    """

    index: str
    version: str
    outcome: Literal["failed", "inconclusive", "error"]
    worse: tuple[str, ...]
    baseline: str | None = None
    folder: str | None = None
    report: str | None = None
    flow_run: str

    @property
    def title(self) -> str:
        """It in a line."""
        words = {
            "failed": "was not accepted: the gate failed",
            "inconclusive": "was not accepted: the gate is inconclusive",
            "error": "could not be evaluated",
        }
        return f"index {self.index}, version {self.version} {words[self.outcome]}"

    @property
    def text(self) -> str:
        """It whole, for people."""
        lines = [self.title, *(f"- {sentence}" for sentence in self.worse)]
        if self.baseline is not None:
            lines.append(f"The baseline stays version {self.baseline}.")
        if self.report is not None:
            lines.append(f"Report: {self.report}")
        return "\n".join(lines)

    @property
    def content(self) -> dict[str, Any]:
        """It whole, for programs. `text` is what chat services show."""
        return {"title": self.title, "text": self.text, **asdict(self), "worse": list(self.worse)}


def send(alert: Alert, settings: AlertSettings) -> tuple[str, ...]:
    """Tells everybody who is named.

    Args:
        alert: what there is to tell.
        settings: who is told.

    Returns:
        Who could not be told, and why, a sentence each; the same is in the log of the flow run.
    """
    ways: dict[str, Callable[[], object]] = {}
    if settings.webhook is not None:
        webhook = settings.webhook
        ways["webhook"] = lambda: _post(read_secret(webhook), alert)
    if settings.block is not None:
        block = settings.block
        ways["block"] = lambda: _notify(block, alert)
    if settings.file is not None:
        file = Path(settings.file)
        ways["file"] = lambda: _append(file, alert)
    failed = tuple(sentence for way, tell in ways.items() if (sentence := _log_errors(way, tell)) is not None)
    if len(failed) == len(ways):
        _append(assay_home() / "alerts.jsonl", alert)
    _emit(alert)
    logger = get_run_logger()
    logger.error(alert.text)
    for sentence in failed:
        logger.error(sentence)
    return failed


def link_to(folder: Path, page: str, settings: AlertSettings) -> str:
    """Where people find a page of a run folder.

    Args:
        folder: the run folder.
        page: the name of the page in it.
        settings: `link` says how run folders are seen from elsewhere; without it, it is the place on the machine.
    """
    if settings.link is None:
        return (folder / page).as_uri()
    link = settings.link.replace("{folder}", quote(str(folder))).replace("{name}", quote(folder.name))
    return f"{link.rstrip('/')}/{page}"


def _log_errors(way: str, tell: Callable[[], object]) -> str | None:
    try:
        tell()
    except Exception as error:  # noqa: BLE001 whatever ails one way, the others are still to be gone
        # The message of an HTTP error would repeat the URL, which may be a secret.
        reason = type(error).__name__ if isinstance(error, httpx.HTTPError) else f"{type(error).__name__}: {error}"
        return f"the alert could not be sent to the {way}: {reason}"
    return None


def _post(url: str, alert: Alert) -> None:
    transport = httpx.HTTPTransport(retries=_TRIES)
    with httpx.Client(timeout=_SECONDS, transport=transport) as client:
        response = client.post(url, json=alert.content)
    if response.is_error:
        raise RuntimeError(f"it replied with status {response.status_code}")


def _notify(name: str, alert: Alert) -> None:
    block = Block.load(name)
    if not isinstance(block, NotificationBlock):
        raise TypeError(f"the block {name} is no notification block")
    cast("Any", block).notify(alert.text, alert.title)


def _append(path: Path, alert: Alert) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    line = {"time": datetime.now(UTC).isoformat(timespec="seconds"), **alert.content}
    with path.open("a", encoding="utf-8") as file:
        file.write(json.dumps(line, ensure_ascii=False) + "\n")


def _emit(alert: Alert) -> None:
    emit_event(EVENT, resource={"prefect.resource.id": f"rag.index.{alert.index}"}, payload=alert.content)
