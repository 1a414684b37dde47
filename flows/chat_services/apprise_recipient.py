"""Send alerts to any service that Apprise knows: chats, mobile phones, ticket systems, home servers."""

from collections.abc import Mapping
from typing import Any

import apprise

from metric_core.errors import ConfigError

_TYPES = {"resolved": apprise.NotifyType.SUCCESS, "error": apprise.NotifyType.FAILURE}


class NotDeliveredError(Exception):
    """A service did not accept a message; Apprise does not say why, and its log may hold secrets."""


class AppriseRecipient:
    """Recipients that the addresses of Apprise name.

    Args:
        address_secret: One or more addresses of Apprise, between blanks, such as `mmosts://chat.example/TOKEN`.

    Raises:
        ConfigError: Apprise does not know an address.

    >>> AppriseRecipient("no-such-service://x")
    Traceback (most recent call last):
        ...
    metric_core.errors.ConfigError: address 1 of 1 is none that Apprise knows, ...
    """

    def __init__(self, address_secret: str) -> None:
        found = [apprise.Apprise.instantiate(address) for address in address_secret.split()]
        wrong = [str(number) for number, each in enumerate(found, start=1) if each is None]
        if wrong or not found:
            raise ConfigError(
                f"address {', '.join(wrong) or '1'} of {len(found)} is none that Apprise knows, such as "
                "mmosts://chat.example/TOKEN; `apprise --details` lists them"
            )
        self._found = [each for each in found if each is not None]

    def send(self, alert: Mapping[str, Any]) -> str:
        """Send an alert, and return how many services accepted it.

        Raises:
            NotDeliveredError: A service did not.
        """
        client = apprise.Apprise()
        for each in self._found:
            client.add(each)
        kind = _TYPES.get(alert["status"]) or _TYPES.get(alert["severity"], apprise.NotifyType.WARNING)
        if not client.notify(body=alert["text"], title=alert["title"], notify_type=kind):
            raise NotDeliveredError
        count = len(self._found)
        return "accepted" if count == 1 else f"{count} services accepted it"
