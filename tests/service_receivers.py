"""Receivers that reply as PagerDuty and Alertmanager do, and keep their incidents by key.

Each checks every request against the published schema of the service, written here in our words: a request that the
service would refuse is refused, and one with a field that it does not know, too.
"""

from collections.abc import Mapping
from contextlib import ExitStack
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler
from typing import Any, ClassVar, Self

from jsonschema import Draft202012Validator

from tests.json_endpoint import JsonEndpoint

_TIME = {"type": "string", "format": "date-time"}
_URL = {"type": "string", "format": "uri", "pattern": "^https?://"}


def _text(limit: int | None = None, least: int = 1) -> dict[str, Any]:
    return {"type": "string", "minLength": least} | ({} if limit is None else {"maxLength": limit})


def _object(required: tuple[str, ...], **properties: Any) -> dict[str, Any]:
    return {"type": "object", "required": [*required], "properties": properties, "additionalProperties": False}


class ServiceReceiver(JsonEndpoint):
    """A service with incidents.

    Args:
        key: Secret that each request must have.
    """

    schema: ClassVar[Mapping[str, Any]]

    def __init__(self, key: str = "") -> None:
        super().__init__()
        self.key = key
        self.open: dict[str, dict[str, Any]] = {}
        """Open incidents by their keys, as the request that opened or renewed them last."""
        self.refused: list[str] = []
        """Replies to requests that were refused."""
        self.busy = 0
        """Number of requests that get the reply that they are too many."""

    def answer(self, content: Any, before: int, request: BaseHTTPRequestHandler) -> tuple[Any, ...]:
        del before
        if self.busy:
            self.busy -= 1
            return 429, {"message": "slow down"}, {"Retry-After": "7"}
        status, reply = self.take(content, request)
        if status >= 300:
            self.refused.append(str(reply))
        return status, reply

    def take(self, content: Any, request: BaseHTTPRequestHandler) -> tuple[int, Any]:
        """Take a request, and return the status and the content of the reply."""
        raise NotImplementedError

    @classmethod
    def errors(cls, content: Any, schema: Mapping[str, Any] | None = None) -> list[str]:
        """Return what is wrong with the content of a request."""
        validator = Draft202012Validator(schema or cls.schema, format_checker=Draft202012Validator.FORMAT_CHECKER)
        return [f"{each.json_path}: {each.message}" for each in validator.iter_errors(content)]


class PagerDutyReceiver(ServiceReceiver):
    """PagerDuty's Events API v2: `POST /v2/enqueue`."""

    schema: ClassVar[Mapping[str, Any]] = {
        **_object(
            ("routing_key", "event_action"),
            routing_key=_text(32, 32),
            event_action={"enum": ["trigger", "acknowledge", "resolve"]},
            dedup_key=_text(255),
            payload=_object(
                ("summary", "source", "severity"),
                summary=_text(1024),
                source=_text(),
                severity={"enum": ["critical", "error", "warning", "info"]},
                timestamp=_TIME,
                component=_text(),
                group=_text(),
                custom_details={"type": "object"},
                **{"class": _text()},
            ),
            links={"type": "array", "items": _object(("href",), href=_URL, text=_text())},
            client=_text(),
            client_url=_URL,
        ),
        "if": {"properties": {"event_action": {"const": "trigger"}}},
        "then": {"required": ["payload"]},
        "else": {"required": ["dedup_key"]},
    }

    @property
    def url(self) -> str:
        return f"{self.origin}/v2/enqueue"

    def take(self, content: Any, request: BaseHTTPRequestHandler) -> tuple[int, Any]:
        errors = self.errors(content)
        if not errors and content["routing_key"] != self.key:
            errors = [f"routing_key {content['routing_key']} is unknown"]
        if errors or request.path != "/v2/enqueue":
            return 400, {"status": "invalid event", "message": "Event object is invalid", "errors": errors}
        key = content["dedup_key"]
        if content["event_action"] == "trigger":
            self.open[key] = content
        elif content["event_action"] == "resolve":
            self.open.pop(key, None)  # an event about an unknown key is dropped
        return 202, {"status": "success", "message": "Event processed", "dedup_key": key}


class AlertmanagerReceiver(ServiceReceiver):
    """Alertmanager's API v2: `POST /api/v2/alerts`; the identity of an alert is the set of its labels."""

    schema: ClassVar[Mapping[str, Any]] = {
        "type": "array",
        "items": _object(
            ("labels",),
            labels={
                "type": "object",
                "minProperties": 1,
                "additionalProperties": _text(),
                "propertyNames": {"pattern": "^[a-zA-Z_][a-zA-Z0-9_]*$"},
            },
            annotations={"type": "object", "additionalProperties": {"type": "string"}},
            startsAt=_TIME,
            endsAt=_TIME,
            generatorURL={"type": "string", "format": "uri"},
        ),
    }

    def __init__(self, key: str = "") -> None:
        super().__init__(key)
        self.alerts: dict[frozenset[tuple[str, str]], dict[str, Any]] = {}

    @property
    def url(self) -> str:
        return self.origin

    def take(self, content: Any, request: BaseHTTPRequestHandler) -> tuple[int, Any]:
        if self.key and request.headers["Authorization"] != self.key:
            return 401, f"unauthorized: {request.headers['Authorization'].split()[-1]}"
        if errors := self.errors(content):
            return 400, "; ".join(errors)
        for alert in content:
            if _time(alert["endsAt"]) < _time(alert["startsAt"]):
                return 400, "start time must be before end time"
            self.alerts[frozenset(alert["labels"].items())] = alert
        now = datetime.now(UTC)
        self.open = {each["labels"]["incident"]: each for each in self.alerts.values() if _time(each["endsAt"]) > now}
        return (200, b"") if request.path == "/api/v2/alerts" else (404, "no such path")


def _time(text: str) -> datetime:
    return datetime.fromisoformat(text)


class Services:
    """A receiver of each service, which run while the context is entered."""

    def __init__(self) -> None:
        self.receivers: dict[str, ServiceReceiver] = {
            "pagerduty": PagerDutyReceiver("0123456789abcdef0123456789ABCDEF"),
            "alertmanager": AlertmanagerReceiver("Bearer prometheus-token"),
        }
        self._stack = ExitStack()

    def __enter__(self) -> Self:
        for each in self.receivers.values():
            self._stack.enter_context(each)
        return self

    def __exit__(self, *error: object) -> None:
        self._stack.close()

    @property
    def secrets(self) -> dict[str, str]:
        """The environment variables that the settings name."""
        return {f"TEST_{name.upper()}": each.key for name, each in self.receivers.items()}

    @property
    def settings(self) -> dict[str, Any]:
        """Options of `deploy.alerts`."""
        urls = {name: each.url for name, each in self.receivers.items()}
        return {
            "pagerduty": {"routing_key": "env:TEST_PAGERDUTY", "url": urls["pagerduty"]},
            "alertmanager": {"url": urls["alertmanager"], "authorization": "env:TEST_ALERTMANAGER"},
        }

    def open(self) -> dict[str, set[str]]:
        """Return the keys of the open incidents of each service, none of which has refused a request."""
        assert [each.refused for each in self.receivers.values()] == [[], []]
        return {name: set(each.open) for name, each in self.receivers.items()}


def keys_at_services(*keys: str) -> dict[str, set[str]]:
    """Return the keys under which services have incidents."""
    return {"pagerduty": {*keys}, "alertmanager": {*keys}}
