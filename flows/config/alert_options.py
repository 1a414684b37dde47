"""Declare the recipients of alerts."""

import re
from pathlib import Path
from typing import Annotated, Any, Literal, Self, TypeAlias
from urllib.parse import quote, urlsplit

from pydantic import AfterValidator, Field, model_validator

from flows.config.intervals import Interval
from tasks.options.option import Option, OptionGroup
from tasks.plugins.instantiate import check_secret_references
from tasks.runtime.credentials import check_reference, refuse_secrets

_ADDRESS = re.compile(r"[^\s@,;:<>()\[\]\"\\]+@[^\s@,;:<>()\[\]\"\\]+")


def _check_address(address: str) -> str:
    """Return an e-mail address after checking its form, because it becomes a part of a message's header."""
    if _ADDRESS.fullmatch(address) is None:
        raise ValueError(f"an e-mail address must have the form name@host, got {address!r}")
    return address


def _check_url(url: str) -> str:
    """Return the URL of a service after checking that it is one, and that it holds no secret."""
    try:
        has_host = urlsplit(url).scheme in ("http", "https") and bool(urlsplit(url).hostname)
    except ValueError:
        has_host = False
    if not has_host:
        raise ValueError("the URL of a service must start with http:// or https:// and name a host")
    return refuse_secrets(url).rstrip("/")


Address: TypeAlias = Annotated[str, AfterValidator(_check_address)]
Reference: TypeAlias = Annotated[str, AfterValidator(check_reference)]
ServiceUrl: TypeAlias = Annotated[str, AfterValidator(_check_url)]


class EmailSettings(OptionGroup, affects_scores=False):
    """Mailbox that alerts are sent to."""

    server: Annotated[
        Reference,
        Option(
            "Reference to the URL of an SMTP server, env:NAME or block:NAME: smtp://USER:PASSWORD@HOST or smtps://.",
            holds="secret",
            examples=["env:ASSAY_SMTP"],
        ),
    ]
    to: Annotated[
        tuple[Address, ...],
        Option("Addresses of the recipients.", holds="text", min_length=1, examples=[["team@example.com"]]),
    ]
    sender: Annotated[Address, Option("Address of the sender.", holds="text", examples=["assay@example.com"])]


class PagerDutySettings(OptionGroup, affects_scores=False):
    """Service of PagerDuty that has an alert for each open incident."""

    routing_key: Annotated[
        Reference,
        Option(
            "Reference to the integration key of an Events API v2 integration, env:NAME or block:NAME.",
            holds="secret",
            examples=["env:PAGERDUTY_KEY"],
        ),
    ]
    url: Annotated[
        ServiceUrl,
        Option("URL that takes events; in the EU https://events.eu.pagerduty.com/v2/enqueue.", holds="secret"),
    ] = "https://events.pagerduty.com/v2/enqueue"


class AlertmanagerSettings(OptionGroup, affects_scores=False):
    """Alertmanager of Prometheus, or a service with its API, with an alert for each open incident."""

    url: Annotated[
        ServiceUrl,
        Option("URL of Alertmanager, without /api/v2/alerts.", holds="secret", examples=["http://alertmanager:9093"]),
    ]
    authorization: Annotated[
        Reference | None,
        Option(
            'Reference to the value of the header Authorization, such as "Bearer TOKEN". Default: no such header.',
            holds="secret",
            examples=["env:ALERTMANAGER_AUTHORIZATION"],
        ),
    ] = None
    keep_days: Annotated[
        float,
        Option(
            "Days after which Alertmanager considers an incident over if no run says that it is still open. It must be "
            "longer than the time between two runs.",
            gt=0,
            examples=[7],
        ),
    ] = 35

    @property
    def alerts_url(self) -> str:
        """URL that alerts are posted to."""
        return f"{self.url}/api/v2/alerts"


class PluginRecipientSettings(OptionGroup, affects_scores=False):
    """A user-defined recipient."""

    recipient: Annotated[
        str, Option("The recipient: module:attribute or an entry point.", holds="text", examples=["house_chat:Chat"])
    ]
    options: Annotated[
        Annotated[dict[str, Any], AfterValidator(check_secret_references)],
        Option("Its arguments, with secrets as env:NAME or block:NAME.", holds="secret"),
    ] = Field(default_factory=dict)


class RecipientOptions(OptionGroup, affects_scores=False):
    """Recipients of alerts."""

    webhook: Annotated[
        Reference | None,
        Option(
            "Reference to the URL that alerts are posted to as JSON: env:NAME, or block:NAME for a Secret block.",
            holds="secret",
        ),
    ] = None
    file: Annotated[
        str | None,
        Option(
            "File of alerts, one JSON object per line. Default: ASSAY_HOME/alerts.jsonl if no other target is set.",
            holds="path",
        ),
    ] = None
    block: Annotated[
        str | None,
        Option("Notification block of the Prefect server, as type/name.", holds="text", examples=["slack-webhook/rag"]),
    ] = None
    email: Annotated[
        EmailSettings | None,
        Option(
            "Mailbox that alerts are sent to: its SMTP server, recipients and sender.",
            examples=[{"server": "env:ASSAY_SMTP", "to": ["team@example.com"], "sender": "assay@example.com"}],
        ),
    ] = None
    pagerduty: Annotated[
        PagerDutySettings | None,
        Option("PagerDuty: the integration key of a service.", examples=[{"routing_key": "env:PAGERDUTY_KEY"}]),
    ] = None
    alertmanager: Annotated[
        AlertmanagerSettings | None, Option("Alertmanager: its URL.", examples=[{"url": "http://alertmanager:9093"}])
    ] = None
    plugin: Annotated[
        PluginRecipientSettings | None,
        Option("A user-defined recipient.", examples=[{"recipient": "house_chat:Chat", "options": {"room": "rag"}}]),
    ] = None


class EscalationSettings(RecipientOptions, affects_scores=False):
    """Recipients of incidents that could not be delivered to the others, or that nobody has acknowledged."""

    after: Annotated[
        Interval,
        Option(
            "Time after which an open incident is escalated if nobody has acknowledged it.",
            holds="text",
            examples=["24h"],
        ),
    ] = "24h"


IncidentKind: TypeAlias = Literal[
    "gate", "alarm", "error", "source", "cost", "comparison", "judge", "record", "objective"
]
"""Kind of an incident that a run can find."""


class RouteSettings(RecipientOptions, affects_scores=False):
    """Recipients of incidents of some kinds, in place of the others."""

    kinds: Annotated[
        tuple[IncidentKind, ...],
        Option("Kinds of the incidents.", min_length=1, examples=[["source"], ["judge", "comparison"]]),
    ]

    @model_validator(mode="after")
    def _has_recipient(self) -> Self:
        named = RecipientOptions.model_fields.keys()
        if all(getattr(self, name) is None for name in named):
            raise ValueError(f"a route needs a recipient: {', '.join(named)}")
        return self


class MaintenanceWindow(OptionGroup, affects_scores=False):
    """A recurring period in which no messages are sent."""

    cron: Annotated[
        str, Option("Cron expression for the times at which the period begins.", holds="text", examples=["0 2 * * 0"])
    ]
    hours: Annotated[float, Option("Length of the period in hours.", gt=0, le=168, examples=[4])]
    timezone: Annotated[
        str,
        Option("Time zone of the cron expression.", holds="text", examples=["Europe/Berlin"]),
    ] = "UTC"


class AlertSettings(RecipientOptions, affects_scores=False):
    """Recipients of alerts about runs that were not accepted, that got worse, or that could not be finished."""

    escalation: Annotated[
        EscalationSettings | None,
        Option(
            "Further recipients, of incidents that were not delivered or not acknowledged in time.",
            examples=[{"webhook": "env:ASSAY_ON_CALL", "after": "24h"}],
        ),
    ] = None
    routes: Annotated[
        tuple[RouteSettings, ...],
        Option(
            "Recipients of incidents of some kinds, in place of the recipients of all others.",
            examples=[[{"kinds": ["source"], "webhook": "env:ASSAY_DATA_TEAM"}]],
        ),
    ] = ()
    runbook: Annotated[
        Annotated[str, AfterValidator(_check_url)] | None,
        Option(
            "URL of the page on what to do about an incident, with {kind} in it.",
            holds="secret",
            examples=["https://wiki.example/assay#{kind}"],
        ),
    ] = None
    maintenance: Annotated[
        tuple[MaintenanceWindow, ...],
        Option(
            "Periods in which no messages are sent; what is open at their end is reported then.",
            examples=[[{"cron": "0 2 * * 0", "hours": 4}]],
        ),
    ] = ()
    link: Annotated[
        Annotated[str, AfterValidator(refuse_secrets)] | None,
        Option(
            "URL of a run folder for links in alerts, with {folder} or {name} in it.",
            holds="secret",
            examples=["https://reports.example/{name}"],
        ),
    ] = None

    @model_validator(mode="after")
    def _route_once(self) -> Self:
        kinds = [kind for route in self.routes for kind in route.kinds]
        twice = sorted({kind for kind in kinds if kinds.count(kind) > 1})
        if twice:
            raise ValueError(f"incidents of the kind {twice[0]} have two routes: give one route both recipients")
        return self

    def link_to(self, folder: Path, page: str) -> str:
        """Return the URL of a page of a run folder; a file URL without `link`."""
        if self.link is None:
            return (folder / page).as_uri()
        link = self.link.replace("{folder}", quote(str(folder))).replace("{name}", quote(folder.name))
        return f"{link.rstrip('/')}/{page}"
