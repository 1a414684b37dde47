"""Give the Prefect server the recipients of alerts, as blocks, so that it can send messages without a worker."""

import hashlib
import re
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Any
from uuid import UUID

from prefect.blocks.core import Block
from prefect.blocks.notifications import CustomWebhookNotificationBlock, SlackWebhook
from prefect.blocks.webhook import Webhook
from prefect.client.orchestration import SyncPrefectClient
from prefect.exceptions import ObjectNotFound, PrefectHTTPStatusError
from prefect.types import SecretDict
from pydantic import SecretStr

from deployments.registry.changes import AppliedChanges, Change
from deployments.registry.server_services import JSON, AlertmanagerService, PagerDutyService
from deployments.registry.watch import Recipients
from flows.alerting.recipients import EmailRecipient, FileRecipient, WebhookRecipient, recipients_of
from flows.config.alert_options import AlertSettings
from metric_core.errors import AssayError
from tasks.runtime.credentials import read_secret
from tasks.runtime.retry import Backoff, retry
from tasks.runtime.smtp import SmtpServer

KIND = "block"
_TRIES, _BACKOFF = 6, Backoff(first=0.2, longest=2.0, jitter=0.5)
_HELD = ("url", "headers", "json_data", "secrets")
"""Fields of blocks that hold options of users."""


@dataclass(frozen=True, slots=True)
class _Channel:
    """A kind of recipient that the server can send to.

    Args:
        kinds: Kinds of its blocks, by what is added to its name.
        make: Function of the recipient and the name of the evaluation that returns the blocks.
        join: Function of the recipient and the ids of its blocks that returns it as the server knows it.
    """

    kinds: Mapping[str, type[Block]]
    make: Callable[[Any, str], Mapping[str, Block]]
    join: Callable[[Any, Mapping[str, UUID]], Recipients]


def apply_recipients(
    client: SyncPrefectClient, deployment: str, evaluation: str, alerts: AlertSettings
) -> tuple[Recipients, list[AppliedChanges]]:
    """Create, update or delete the blocks by which the server sends alerts about a deployment.

    Returns:
        The recipients that the server can send to, and the changes; a change of the kind "unreported" says which
        recipient it cannot send to, and why.
    """
    done: list[AppliedChanges] = []
    joined: list[Recipients] = []
    kept: list[str] = []
    chosen = {each.name: each for each in recipients_of(alerts)}
    for name in [name for name in _CHANNELS if name in chosen]:
        channel, recipient = _CHANNELS[name], chosen[name]
        try:
            blocks = channel.make(recipient, evaluation)
        except AssayError as error:
            done.append(_unreported(deployment, f"the {name} gets no message about runs that are missing: {error}"))
            continue
        ids: dict[str, UUID] = {}
        for suffix, block in blocks.items():
            saved, slug = block_name(deployment, f"{name}{suffix}"), block.get_block_type_slug()
            change = _save(client, saved, block)
            done.append(AppliedChanges(KIND, f"{slug}/{saved}", change))
            ids[suffix] = client.read_block_document_by_name(saved, slug).id
        joined.append(channel.join(recipient, ids))
        kept.append(name)
    done += remove_recipients(client, deployment, without=kept)
    if alerts.block is not None:
        kind, _, name = alerts.block.partition("/")
        found = client.read_block_document_by_name(name, kind, include_secrets=False)
        joined.append(Recipients(notifications=(found.id,)))
    if not chosen.keys() - {FileRecipient.name}:
        advice = "set a recipient in [deploy.alerts] other than a file: the server cannot write to a file of a worker"
        done.append(_unreported(deployment, f"nobody gets a message about runs that are missing: {advice}"))
    return Recipients.union(joined), done


def remove_recipients(
    client: SyncPrefectClient, deployment: str, without: Collection[str] = (), *, dry_run: bool = False
) -> Iterator[AppliedChanges]:
    """Delete the blocks of a deployment.

    Args:
        without: Recipients whose blocks stay.
        dry_run: If true, delete nothing.
    """
    gone = {name: channel.kinds for name, channel in _CHANNELS.items() if name not in without}
    for full, kind in ((f"{name}{suffix}", kind) for name, kinds in gone.items() for suffix, kind in kinds.items()):
        name, slug = block_name(deployment, full), kind.get_block_type_slug()
        try:
            found = client.read_block_document_by_name(name, slug, include_secrets=False)
        except ObjectNotFound:
            continue
        if not dry_run:
            client.delete_block_document(found.id)
        yield AppliedChanges(KIND, f"{slug}/{name}", Change.TO_REMOVE if dry_run else Change.REMOVED)


def block_name(deployment: str, channel: str) -> str:
    """Return the name of the block of a deployment, which may have only small letters, digits and hyphens.

    >>> block_name("monitor-handbook", "webhook"), block_name("monitor-A.b", "email")
    ('rag-assay-monitor-handbook-webhook', 'rag-assay-monitor-a-b-3c66d3-email')
    """
    slug = re.sub(r"[^a-z0-9-]", "-", deployment.lower())
    if slug != deployment:
        slug += f"-{hashlib.sha256(deployment.encode()).hexdigest()[:6]}"
    return f"rag-assay-{slug}-{channel}"


def _webhook(recipient: WebhookRecipient) -> Block:
    return Webhook(url=SecretStr(read_secret(recipient.reference)), headers=SecretDict(JSON))


def _mailbox(recipient: EmailRecipient) -> Block:
    """Return a block that sends e-mail: Prefect has none for SMTP, but this one takes any URL of Apprise."""
    email = recipient.settings
    server = SmtpServer.from_url(read_secret(email.server))
    return SlackWebhook(url=SecretStr(server.apprise_url(email.sender, email.to)))


_CUSTOM = CustomWebhookNotificationBlock
_CHANNELS: Mapping[str, _Channel] = {
    "webhook": _Channel(
        {"": Webhook}, lambda each, _: {"": _webhook(each)}, lambda _, ids: Recipients(webhooks=(ids[""],))
    ),
    "email": _Channel(
        {"": SlackWebhook}, lambda each, _: {"": _mailbox(each)}, lambda _, ids: Recipients(notifications=(ids[""],))
    ),
    "pagerduty": _Channel(
        {"": _CUSTOM, "-end": _CUSTOM},
        PagerDutyService.blocks,
        lambda _, ids: Recipients(services=(PagerDutyService(ids[""], ids["-end"]),)),
    ),
    "alertmanager": _Channel(
        {"": Webhook},
        AlertmanagerService.blocks,
        lambda each, ids: Recipients(services=(AlertmanagerService(ids[""], timedelta(days=each.settings.keep_days)),)),
    ),
}
"""Name of a recipient -> how the server sends to it. A notification block is on the server already; a file is not."""


def _save(client: SyncPrefectClient, name: str, block: Block) -> Change:
    """Save a block under a name, unless the server has the same."""
    slug = block.get_block_type_slug()
    try:
        found = client.read_block_document_by_name(name, slug).data
    except ObjectNotFound:
        change = Change.CREATED
    else:
        if all(found.get(key) == value for key, value in _content(block).items()):
            return Change.UNCHANGED
        change = Change.UPDATED
    retry(lambda: block.save(name, overwrite=True), _pause_after)
    return change


def _pause_after(error: Exception, attempt: int) -> float | None:
    """Return the seconds to wait: a block cannot be saved while another deployment saves one of the same new type."""
    is_race = isinstance(error, ObjectNotFound | PrefectHTTPStatusError) and attempt < _TRIES
    return _BACKOFF.seconds(attempt) if is_race else None


def _content(block: Block) -> dict[str, Any]:
    """Return what a block holds, with its secrets."""
    content = {name: getattr(block, name) for name in _HELD if hasattr(block, name)}
    return {
        name: each.get_secret_value() if isinstance(each, SecretStr | SecretDict) else each
        for name, each in content.items()
    }


def _unreported(deployment: str, reason: str) -> AppliedChanges:
    return AppliedChanges("unreported", deployment, Change.UNCHANGED, reason)
