"""Read a model that a user names in one word."""

from typing import Any

from tasks.options.load_profile import is_profile_name
from tasks.options.server_addresses import refuse_bare_host


def parse_judge(value: Any) -> Any:
    """Return the options of a judge that is named by a backend, a URL, a profile, or a profile and a URL.

    >>> parse_judge("factcg")
    {'backend': 'verifier', 'profile': 'factcg'}
    >>> parse_judge("minicheck-7b@http://localhost:8000/v1")
    {'backend': 'server', 'server': {'urls': ['http://localhost:8000/v1']}, 'profile': 'minicheck-7b'}

    Raises:
        ConfigError: The word is a host and a port without a scheme, or the profile does not exist.
    """
    if not isinstance(value, str):
        return value
    if is_profile_name(value):
        return {"backend": "verifier", "profile": value}
    name, at, url = value.partition("@")
    if at and "://" in url and is_profile_name(name):
        return {**parse_model(url), "profile": name}
    return parse_model(value)


def replace_judge(word: str) -> dict[str, Any]:
    """Return the options of the judge that a flag names, which replaces the one of a configuration.

    The profile of the configuration, its model in the process and its server to launch belong to the judge that is
    replaced. How requests are made stays.

    >>> replace_judge("builtin")
    {'profile': None, 'verifier': None, 'launch': None, 'backend': 'builtin'}

    Raises:
        ConfigError: The word is a host and a port without a scheme, or the profile does not exist.
    """
    return {"profile": None, "verifier": None, "launch": None, **parse_judge(word)}


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
