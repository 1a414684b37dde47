"""Declare the options of model servers: their addresses, and how the client waits and retries."""

import os
from typing import Annotated, ClassVar
from urllib.parse import urlsplit

from pydantic import AfterValidator, ConfigDict

from metric_core.errors import ConfigError
from tasks.options.option import Option, OptionGroup
from tasks.runtime.credentials import check_reference, read_secret


def normalize_url(url: str) -> str:
    """Return a server's URL as requests use it: with `/v1` where it has no path, without a trailing slash.

    Raises:
        ValueError: It is not an http(s) URL, or it holds credentials or a query, which would end up in run folders.

    >>> normalize_url("http://localhost:8000/")
    'http://localhost:8000/v1'
    """
    parts = urlsplit(url.strip())
    if parts.username is not None or parts.password is not None or parts.query or parts.fragment:
        raise ValueError(
            "a server's URL must hold no user, password, query or fragment, because it is written into run folders; "
            "put the key into an environment variable or a Secret block and name that in api_key"
        )
    if parts.scheme not in ("http", "https") or not parts.hostname:
        shown = "something with an @, not repeated here" if "@" in url else repr(url)
        raise ValueError(f"a server's URL looks like http://host:8000/v1, got {shown}")
    return f"{parts.scheme}://{parts.netloc}{parts.path.rstrip('/') or '/v1'}"


def _normalize_urls(urls: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(map(normalize_url, urls))


class ServerOptions(OptionGroup, affects_scores=False):
    """Options of a model server: its address, how the client retries, and its model."""

    model_config = ConfigDict(hide_input_in_errors=True)
    max_reply_bytes: ClassVar[int] = 16 * 1024**2
    """Size of the largest reply that is read, after decompression."""

    urls: Annotated[
        Annotated[tuple[str, ...], AfterValidator(_normalize_urls)],
        Option("A /v1 URL, or one per replica of the same model.", holds="secret", min_length=1),
    ]
    api_key: Annotated[
        Annotated[str, AfterValidator(check_reference)] | None,
        Option(
            "Reference to the key of the server: env:NAME, or block:NAME for a Secret block of the Prefect server.",
            holds="secret",
        ),
    ] = None
    api_key_env: Annotated[
        str | None, Option("Name of the environment variable that holds the key.", holds="secret")
    ] = None
    concurrency: Annotated[
        int,
        Option(
            "Maximum number of requests in flight per replica; of conversations, where a request holds several.",
            ge=1,
            le=4096,
        ),
    ] = 128
    timeout: Annotated[
        float | None,
        Option(
            "Seconds that a request may take. Default: 180; 1800 for llama.cpp, which reads a long prompt for minutes.",
            gt=0,
            examples=[600.0],
        ),
    ] = None
    max_retries: Annotated[
        int, Option("Number of retries after the status 429 or 5xx, a lost connection or a timeout.", ge=0)
    ] = 8
    unavailable_timeout: Annotated[
        float, Option("Seconds to wait for a server that is down, before the run ends.", ge=0)
    ] = 120.0

    model: Annotated[
        str | None,
        Option(
            "Name of the model at the server. Default: the only one it has.",
            holds="text",
            affects_scores=True,
            by_run=True,
        ),
    ] = None
    revision: Annotated[
        str | None,
        Option(
            "Revision of the model, which servers do not report. With another one, everything is asked again.",
            holds="text",
            affects_scores=True,
        ),
    ] = None

    @property
    def peak_in_flight(self) -> int:
        """The number of requests to which `concurrency` may rise."""
        return self.concurrency

    def share(self, processes: int) -> int:
        """Return the number of requests in flight that one of several processes has."""
        return max(1, self.concurrency // processes)

    def read_key(self) -> str | None:
        """Read the key of the server, which is stored nowhere.

        Raises:
            ConfigError: The variable or the block does not exist, or the key has characters that no header can carry.
        """
        key = self._named_key()
        if key is not None and not (key.isascii() and key.isprintable()):
            raise ConfigError(
                f"the key that {self.api_key or self.api_key_env} names holds a line break or another character that "
                "no server accepts in a key; store the key alone"
            )
        return key

    def _named_key(self) -> str | None:
        if self.api_key is not None and self.api_key_env is not None:
            raise ConfigError("api_key and api_key_env both name the server's key; keep one of them")
        if self.api_key is not None:
            return read_secret(self.api_key)
        if self.api_key_env is None:
            return None
        key = os.environ.get(self.api_key_env, "").strip()
        if not key:
            raise ConfigError(
                f"api_key_env names {self.api_key_env}, but the environment has no such variable, or an empty one; "
                "set it to the server's key, or leave api_key_env out if the server needs none"
            )
        return key
