"""Read the proxies of the environment; requests to this machine never use one.

A proxy runs somewhere else, where `localhost` is another machine. Libraries differ in whether they exempt loopback
addresses and in which variables they read, so all clients of this package ask `proxy_for`, and the libraries that make
their own requests get a complete `NO_PROXY` from `exempt_loopback`.
"""

import os
from collections.abc import Mapping
from ipaddress import ip_address
from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass

from metric_core.errors import ConfigError

SOCKS = ("socks5", "socks5h")
"""Schemes of SOCKS proxies; names are resolved by the proxy with both."""

_LOOPBACK = ("localhost", "127.0.0.1", "::1")
_SCHEMES = ("http", "https", *SOCKS)


def is_loopback(url: str) -> bool:
    """Return whether a URL names this machine.

    >>> [is_loopback(url) for url in ("http://localhost:8000/v1", "http://127.0.1.1", "http://[::1]:8000", "http://gpu")]
    [True, True, True, False]
    """
    host = (urlsplit(url).hostname or "").rstrip(".")
    try:
        address = ip_address(host)
    except ValueError:
        return host == "localhost" or host.endswith(".localhost")
    return address.is_loopback or address.is_unspecified


def proxy_for(url: str) -> str | None:
    """Return the proxy that the environment names for a URL (`HTTP_PROXY`, `HTTPS_PROXY`, `ALL_PROXY`, `NO_PROXY`).

    Returns:
        The URL of the proxy; None if there is none, or the server is on this machine.

    Raises:
        ConfigError: The variable does not hold the URL of an HTTP or SOCKS5 proxy.
    """
    parts = urlsplit(url)
    if not parts.hostname or is_loopback(url) or proxy_bypass(parts.hostname):
        return None
    proxies = getproxies()
    name = parts.scheme if proxies.get(parts.scheme) else "all"
    return _check(name, proxies[name]) if proxies.get(name) else None


def exempt_loopback() -> None:
    """Add the loopback addresses to `NO_PROXY`, for libraries and child processes that read proxies themselves.

    Raises:
        ConfigError: A variable does not hold the URL of an HTTP or SOCKS5 proxy; the libraries would fail with a
            traceback, even for requests that need no proxy.
    """
    proxies = {name: url for name, url in getproxies().items() if name in ("http", "https", "all") and url}
    for name, url in proxies.items():
        _check(name, url)
    if proxies:
        os.environ.update(_with_loopback(os.environ))


def _with_loopback(environment: Mapping[str, str]) -> dict[str, str]:
    """Return both spellings of NO_PROXY with the loopback addresses."""
    value = environment.get("no_proxy", environment.get("NO_PROXY", ""))
    hosts = [host.strip() for host in value.split(",") if host.strip()]
    if "*" not in hosts:
        hosts += [host for host in _LOOPBACK if host not in hosts]
    return dict.fromkeys(("no_proxy", "NO_PROXY"), ",".join(hosts))


def _check(name: str, proxy: str) -> str:
    """Return the URL of a proxy, with a scheme.

    Raises:
        ConfigError: It is not the URL of an HTTP or SOCKS5 proxy.
    """
    url = proxy if "://" in proxy else f"http://{proxy}"
    try:
        parts = urlsplit(url)
        is_usable = parts.scheme in _SCHEMES and bool(parts.hostname) and (parts.port or 0) >= 0
    except ValueError:
        is_usable = False
    if not is_usable:
        shown = f"{proxy.partition('://')[0]}://..." if "://" in proxy else "something without a scheme"
        raise ConfigError(
            f"the environment variable {name.upper()}_PROXY holds {shown}, wanted the URL of a proxy that starts with "
            f"{', '.join(f'{scheme}://' for scheme in _SCHEMES)}; correct it, or unset it"
        )
    return url
