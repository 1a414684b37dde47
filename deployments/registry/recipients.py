"""Give the Prefect server the recipients of alerts, as blocks, so that it can send messages without a worker."""

import hashlib
import re
from collections.abc import Callable, Collection, Iterator
from typing import Any
from uuid import UUID

from prefect.blocks.core import Block
from prefect.blocks.notifications import SlackWebhook
from prefect.blocks.webhook import Webhook
from prefect.client.orchestration import SyncPrefectClient
from prefect.exceptions import ObjectNotFound
from prefect.types import SecretDict
from pydantic import SecretStr

from deployments.registry.changes import AppliedChanges, Change
from deployments.registry.watch import Recipients
from flows.config.alert_options import AlertSettings, EmailSettings
from metric_core.errors import AssayError
from tasks.runtime.credentials import read_secret
from tasks.runtime.smtp import SmtpServer

KIND = "block"
_JSON = {"Content-Type": "application/json"}
_CHANNELS = ("webhook", "email")
_SLUGS = {"webhook": "webhook", "email": "slack-webhook"}


def apply_recipients(
    client: SyncPrefectClient, deployment: str, alerts: AlertSettings
) -> tuple[Recipients, list[AppliedChanges]]:
    """Create, update or delete the blocks by which the server sends alerts about a deployment.

    Args:
        client: Client of the server.
        deployment: Name of the deployment.
        alerts: Recipients of alerts.

    Returns:
        The recipients that the server can send to, and the changes; a change of the kind "unreported" says which
        recipient it cannot send to, and why.
    """
    wanted: dict[str, Block] = {}
    done: list[AppliedChanges] = []
    for channel, make in _makers(alerts).items():
        try:
            wanted[channel] = make()
        except AssayError as error:
            done.append(_unreported(deployment, f"the {channel} gets no message about runs that are missing: {error}"))
    webhooks: list[UUID] = []
    notifications: list[UUID] = []
    for channel, block in wanted.items():
        change = _save(client, block_name(deployment, channel), block)
        done.append(AppliedChanges(KIND, f"{_SLUGS[channel]}/{block_name(deployment, channel)}", change))
        found = client.read_block_document_by_name(block_name(deployment, channel), _SLUGS[channel])
        (webhooks if channel == "webhook" else notifications).append(found.id)
    done += remove_recipients(client, deployment, without=wanted)
    if alerts.block is not None:
        kind, _, name = alerts.block.partition("/")
        notifications.append(client.read_block_document_by_name(name, kind, include_secrets=False).id)
    if not (alerts.webhook or alerts.email or alerts.block):
        advice = "set webhook, email or block in [deploy.alerts]; the server cannot write to a file of a worker"
        done.append(_unreported(deployment, f"nobody gets a message about runs that are missing: {advice}"))
    return Recipients(tuple(webhooks), tuple(notifications)), done


def remove_recipients(
    client: SyncPrefectClient, deployment: str, without: Collection[str] = (), *, dry_run: bool = False
) -> Iterator[AppliedChanges]:
    """Delete the blocks of a deployment.

    Args:
        client: Client of the server.
        deployment: Name of the deployment.
        without: Channels whose blocks stay.
        dry_run: If true, delete nothing.
    """
    for channel in _CHANNELS:
        if channel in without:
            continue
        name = block_name(deployment, channel)
        try:
            found = client.read_block_document_by_name(name, _SLUGS[channel], include_secrets=False)
        except ObjectNotFound:
            continue
        if not dry_run:
            client.delete_block_document(found.id)
        yield AppliedChanges(KIND, f"{_SLUGS[channel]}/{name}", Change.REMOVED)


def block_name(deployment: str, channel: str) -> str:
    """Return the name of the block of a deployment, which may have only small letters, digits and hyphens.

    >>> block_name("monitor-handbook", "webhook"), block_name("monitor-A.b", "email")
    ('rag-assay-monitor-handbook-webhook', 'rag-assay-monitor-a-b-3c66d3-email')
    """
    slug = re.sub(r"[^a-z0-9-]", "-", deployment.lower())
    if slug != deployment:
        slug += f"-{hashlib.sha256(deployment.encode()).hexdigest()[:6]}"
    return f"rag-assay-{slug}-{channel}"


def _makers(alerts: AlertSettings) -> dict[str, Callable[[], Block]]:
    makers: dict[str, Callable[[], Block]] = {}
    if (webhook := alerts.webhook) is not None:
        makers["webhook"] = lambda: Webhook(url=SecretStr(read_secret(webhook)), headers=SecretDict(_JSON))
    if (email := alerts.email) is not None:
        makers["email"] = lambda: _email_block(email)
    return makers


def _email_block(email: EmailSettings) -> Block:
    """Return a block that sends e-mail: Prefect has none for SMTP, but this one takes any URL of Apprise."""
    server = SmtpServer.from_url(read_secret(email.server))
    return SlackWebhook(url=SecretStr(server.apprise_url(email.sender, email.to)))


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
    block.save(name, overwrite=True)
    return change


def _content(block: Block) -> dict[str, Any]:
    """Return what a block holds, with its secrets."""
    if isinstance(block, Webhook):
        return {"url": block.url.get_secret_value(), "headers": block.headers.get_secret_value()}
    assert isinstance(block, SlackWebhook)  # noqa: S101 the other kind of block made here
    return {"url": block.url.get_secret_value()}


def _unreported(deployment: str, reason: str) -> AppliedChanges:
    return AppliedChanges("unreported", deployment, Change.UNCHANGED, reason)
