"""Decide which incidents each recipient of alerts is told of, and where people read what to do about them."""

from collections.abc import Iterable, Iterator
from dataclasses import replace
from urllib.parse import quote

from flows.alerting.alert import Alert
from flows.alerting.recipients import EmailRecipient, Recipient, default_file, recipients_of
from flows.alerting.stored_alerts import choose_incidents
from flows.config.alert_options import AlertSettings, RouteSettings

ESCALATION = " for escalation"
"""End of the names of recipients of escalations."""


def own_recipients(settings: AlertSettings) -> dict[str, Recipient]:
    """Return the recipients of alerts by their names, with those of routes: the default file if none is configured."""
    routed = {
        f"{name} for {_name_route(route)}": each
        for route in settings.routes
        for name, each in _named(recipients_of(route))
    }
    return {**dict(_named(recipients_of(settings) or (default_file(),))), **routed}


def escalation_recipients(settings: AlertSettings) -> dict[str, Recipient]:
    """Return the recipients of escalations, by their names."""
    found = () if settings.escalation is None else recipients_of(settings.escalation)
    return {f"{name}{ESCALATION}": each for name, each in _named(found)}


def part_for(name: str, alert: Alert, settings: AlertSettings) -> Alert | None:
    """Return what a recipient is told of an alert; None if nothing has changed that concerns it.

    Incidents of a kind that has a route go to its recipients alone, all others to those without a route.

    Args:
        name: Name of the recipient.
    """
    own = next((set(route.kinds) for route in settings.routes if name.endswith(f" for {_name_route(route)}")), None)
    others = {kind for route in settings.routes for kind in route.kinds}
    kept = [each for each in alert.incidents if (each.kind not in others if own is None else each.kind in own)]
    if len(kept) == len(alert.incidents):
        return None if own is not None and not kept else alert
    if all(each.change == "continuing" for each in kept):
        has_news = any(each.change != "continuing" for each in alert.incidents)
        return None if own is not None or has_news else replace(alert, incidents=tuple(kept))
    chosen = choose_incidents(alert, {each.key for each in kept})
    return replace(chosen, incidents=tuple(kept))


def add_runbooks(alert: Alert, settings: AlertSettings) -> Alert:
    """Return an alert whose incidents name the page on what to do about them, if the configuration has one."""
    if settings.runbook is None:
        return alert
    incidents = (
        replace(each, runbook=settings.runbook.replace("{kind}", quote(each.kind, safe=""))) for each in alert.incidents
    )
    return replace(alert, incidents=tuple(incidents))


def _name_route(route: RouteSettings) -> str:
    return " and ".join(route.kinds)


def _named(recipients: Iterable[Recipient]) -> Iterator[tuple[str, Recipient]]:
    """Yield recipients with their names; each e-mail address is one, since a server may refuse some of them."""
    for recipient in recipients:
        if isinstance(recipient, EmailRecipient):
            yield from recipient.addresses()
        else:
            yield recipient.name, recipient
