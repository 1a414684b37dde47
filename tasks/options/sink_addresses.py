"""Check the addresses of the sinks of results."""

from collections.abc import Mapping
from urllib.parse import urlsplit


def split_address(text: str) -> list[tuple[str, str]]:
    """Return the pair of `name=address`.

    Raises:
        ValueError: The text is none; it is not repeated, since an address may hold a secret.
    """
    name, _, address = text.partition("=")
    if not name.strip() or not address.strip():
        raise ValueError("expected name=address, such as mlflow=http://localhost:5000; several are given one by one")
    return [(name.strip(), address.strip())]


def check_addresses(sinks: Mapping[str, str]) -> Mapping[str, str]:
    """Return the addresses of sinks as they were given.

    Raises:
        ValueError: One of them holds a user or a password, which every message about the sink would repeat.

    >>> check_addresses({"otlp": "http://localhost:4318"})
    {'otlp': 'http://localhost:4318'}
    """
    for name, address in sinks.items():
        parts = urlsplit(address)
        if parts.username or parts.password:
            raise ValueError(
                f"the address of the sink {name} must hold no user and no password; its client reads them from "
                "environment variables"
            )
    return sinks
