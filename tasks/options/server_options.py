"""What a user can set about model servers: where they are, and how patient the client is."""

import os
from typing import Annotated
from urllib.parse import urlsplit

from pydantic import AfterValidator, BaseModel, ConfigDict, Field

from metric_core.errors import ConfigError
from tasks.runtime.credentials import is_reference, read_secret


def normalize_url(url: str) -> str:
    """A server's URL as requests use it: with `/v1` where no path is given, without a slash at its end.

    Raises:
        ValueError: it is no http(s) URL, or holds credentials or a query, which would end up in run folders.

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


class ServerOptions(BaseModel):
    """How servers are reached. None of it can change an answer.

    Args:
        urls: one `/v1` URL, or one a replica; all replicas serve the same model.
        api_key: where the key is, for servers that want one: `env:NAME` or `block:NAME`.
        api_key_env: the same for an environment variable, by its name alone.
        concurrency: requests in flight at a replica.
        timeout: seconds a request may take.
        max_retries: how often a request is sent again after the status 429 or 5xx, a lost connection or a timeout.
        patience: seconds to wait for a server that is down to come back, before the run ends.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", hide_input_in_errors=True)

    urls: Annotated[tuple[str, ...], AfterValidator(_normalize_urls)] = Field(
        min_length=1, description="one /v1 URL, or one a replica of the same model"
    )
    api_key: Annotated[str, AfterValidator(is_reference)] | None = Field(
        None, description="where the key is: env:NAME, or block:NAME for a Secret block of the Prefect server"
    )
    api_key_env: str | None = Field(None, description="name of the environment variable that holds the key")
    concurrency: int = Field(128, ge=1, le=4096, description="requests in flight at a replica")
    timeout: float = Field(180.0, gt=0, description="seconds a request may take")
    max_retries: int = Field(8, ge=0, description="how often a request is sent again after an error")
    patience: float = Field(120.0, ge=0, description="seconds to wait for a server that is down to come back")

    def read_key(self) -> str | None:
        """The key, read each time and kept nowhere.

        Raises:
            ConfigError: the variable is not set, or the block is not there, or no header can carry what it holds.
        """
        key = self._named_key()
        if key is not None and not (key.isascii() and key.isprintable()):
            raise ConfigError(
                f"the key that {self.api_key or self.api_key_env} names holds a line break or another character that "
                "no server takes in a key; store the key alone"
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
                "set it to the server's key, or leave api_key_env out if the server wants none"
            )
        return key
