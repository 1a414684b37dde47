"""Let the Prefect server open and end incidents at services that keep them, without a worker.

A webhook block posts any JSON, but always to the same URL, and the JSON is in the automation, where no secret may be. A
custom webhook block puts its secrets, and the subject and the body of a message, into URL and JSON. A service that
wants a secret in JSON, or the key of an incident in the path, needs the latter: the subject is then the problem in one
line, and the body is the key.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from uuid import UUID

from prefect.blocks.core import Block
from prefect.blocks.notifications import CustomWebhookNotificationBlock
from prefect.blocks.webhook import Webhook
from prefect.events.actions import ActionTypes, CallWebhook, SendNotification
from prefect.types import SecretDict
from pydantic import SecretStr

from deployments.registry.templates import Field, cut_template, json_template, literal, time_after
from deployments.registry.watch import Report, WatchedDeployment, incident_key, incident_kind
from flows.alerting.formats import (
    DEDUP_KEY_LIMIT,
    SUMMARY_LIMIT,
    ServiceEvent,
    alertmanager_alert,
    pagerduty_event,
    shorten_key,
)
from flows.alerting.recipients import AlertmanagerRecipient, PagerDutyRecipient
from tasks.runtime.credentials import read_secret

JSON = {"Content-Type": "application/json"}
_SUBJECT, _BODY, _NAME, _SECRET = "{{subject}}", "{{body}}", "{{name}}", "{{secret}}"
_OVER = "a run has started or ended"


def _event(deployment: WatchedDeployment, report: Report, *, is_open: bool) -> ServiceEvent:
    title = Field.TITLE.mark
    return ServiceEvent(
        key=incident_key(deployment, report),
        is_open=is_open,
        severity="error",
        kind=incident_kind(report),
        subject=deployment.evaluation,
        summary=Field.SHORT.mark,
        text=f"{title}\n{Field.TEXT.mark}" if is_open else f"{title}: {_OVER}",
        details={"evaluation": deployment.evaluation, "deployment": deployment.name},
    )


def _template(content: object, report: Report, **variables: str) -> str:
    short = cut_template(report.title, SUMMARY_LIMIT)
    return json_template(content, title=report.title, text=report.text, short=short, **variables)


@dataclass(frozen=True, slots=True)
class PagerDutyService:
    """PagerDuty, with a block for events that open incidents and one for events that end them."""

    opener: UUID
    ender: UUID

    @staticmethod
    def blocks(recipient: PagerDutyRecipient, evaluation: str) -> Mapping[str, Block]:
        """Return the blocks, by what is added to the name of the recipient."""
        settings = recipient.settings
        secrets = SecretDict({"secret": read_secret(settings.routing_key)})
        return {
            suffix: CustomWebhookNotificationBlock(
                name=evaluation,
                url=settings.url,
                json_data=pagerduty_event(
                    ServiceEvent(
                        key=_BODY,
                        is_open=is_open,
                        severity="error",
                        kind="missed",
                        subject=_NAME,
                        summary=_SUBJECT,
                        text=_SUBJECT,
                    ),
                    _SECRET,
                ),
                secrets=secrets,
            )
            for suffix, is_open in (("", True), ("-end", False))
        }

    def opening(self, deployment: WatchedDeployment, report: Report) -> ActionTypes:
        """Send an event that opens the incident, with the advice, because people on call may see one line only."""
        whole = f"{report.title}. {report.text}"
        return self._send(self.opener, cut_template(whole, SUMMARY_LIMIT), deployment, report)

    def ending(self, deployment: WatchedDeployment, report: Report) -> ActionTypes:
        """Send an event that ends it."""
        return self._send(self.ender, _OVER, deployment, report)

    def _send(self, block: UUID, subject: str, deployment: WatchedDeployment, report: Report) -> ActionTypes:
        key = shorten_key(incident_key(deployment, report), DEDUP_KEY_LIMIT)
        return SendNotification(block_document_id=block, subject=subject, body=literal(key))


@dataclass(frozen=True, slots=True)
class AlertmanagerService:
    """Alertmanager, with a block for both."""

    block: UUID
    keep: timedelta

    @staticmethod
    def blocks(recipient: AlertmanagerRecipient, evaluation: str) -> Mapping[str, Block]:
        """Return the block."""
        del evaluation
        settings = recipient.settings
        secret = {} if settings.authorization is None else {"Authorization": read_secret(settings.authorization)}
        return {"": Webhook(url=SecretStr(settings.alerts_url), headers=SecretDict({**JSON, **secret}))}

    def opening(self, deployment: WatchedDeployment, report: Report) -> ActionTypes:
        """Send the alert."""
        return self._call(_event(deployment, report, is_open=True), report, Field.UNTIL)

    def ending(self, deployment: WatchedDeployment, report: Report) -> ActionTypes:
        """Send it again, as one that is over."""
        return self._call(_event(deployment, report, is_open=False), report, Field.TIME)

    def _call(self, event: ServiceEvent, report: Report, end: Field) -> ActionTypes:
        content = {
            **alertmanager_alert(event, self.keep, datetime.now(UTC)),
            "startsAt": Field.TIME.mark,
            "endsAt": end.mark,
        }
        payload = _template([content], report, until=time_after(self.keep))
        return CallWebhook(block_document_id=self.block, payload=payload)
