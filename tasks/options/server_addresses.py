"""Check addresses of servers as users write them."""

import re

from metric_core.errors import ConfigError

_HOST = re.compile(r"[\w.-]+:\d+(/|$)")
"""A host and its port, which no module:attribute can be."""


def refuse_bare_host(name: str) -> None:
    """Refuse a host and a port without a scheme, which would be taken for a module and its attribute.

    >>> refuse_bare_host("my_module:Judge")
    >>> refuse_bare_host("localhost:8000/v1")
    Traceback (most recent call last):
        ...
    metric_core.errors.ConfigError: 'localhost:8000/v1' is not a URL; give a server as in http://localhost:8000/v1

    Raises:
        ConfigError: The name is a host and a port; the message suggests a URL.
    """
    if _HOST.match(name):
        raise ConfigError(f"{name!r} is not a URL; give a server as in http://{name}")
