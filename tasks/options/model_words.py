"""Read a model that a user names in one word."""

from typing import Any

from tasks.options.server_addresses import refuse_bare_host


def parse_model(value: Any) -> Any:
    """Return the options of a judge or an embedder that is named by a backend or by the URL of its server.

    >>> parse_model("http://localhost:8000/v1")
    {'backend': 'server', 'server': {'urls': ['http://localhost:8000/v1']}}

    Raises:
        ConfigError: The word is a host and a port without a scheme.
    """
    if not isinstance(value, str):
        return value
    refuse_bare_host(value)
    return {"backend": "server", "server": {"urls": [value]}} if "://" in value else {"backend": value}
