"""What a user can set about the index from which contexts are fetched."""

from typing import Annotated, Any
from urllib.parse import urlsplit

from pydantic import AfterValidator, BaseModel, ConfigDict, Field

from tasks.options.server_addresses import refuse_bare_host
from tasks.plugins.instantiate import check_secret_references
from tasks.runtime.credentials import is_reference


def describe_address(name: str) -> str:
    """An http(s) URL without secrets in it, or the name of an object: `module:attribute` or an entry point.

    Raises:
        ValueError: it is a URL of another kind, or one with a user or a password.

    >>> describe_address("http://localhost:9000/search")
    'http://localhost:9000/search'
    """
    if "://" not in name:
        return name
    parts = urlsplit(name)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise ValueError("an index is reached by http(s), or named by module:attribute or an entry point")
    if parts.username is not None or parts.password is not None or parts.query:
        raise ValueError(
            "the URL of an index must hold no user, password or query, because it is written into run folders; "
            "name the key in api_key"
        )
    return name


class RetrieverOptions(BaseModel):
    """The index that contexts are fetched from, and what answers with them.

    Args:
        index: an HTTP endpoint, or an object with the protocol `Retriever`.
        generator: an HTTP endpoint, or an object with the protocol `Generator`; without one, answers stay as they are.
        options: what an object of the user's own is made with.
        top_k: passages a query, told to endpoints; a longer reply is cut.
        api_key: where the key of the endpoints is: `env:NAME` or `block:NAME`.
        concurrency: queries in flight.
        timeout: seconds a query may take.
        max_retries: how often a query is sent again after the status 429 or 5xx, a lost connection or a timeout.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", hide_input_in_errors=True)

    index: Annotated[str, AfterValidator(describe_address)] = Field(
        min_length=1, description="an http(s) URL that takes a query and gives passages, or module:attribute"
    )
    generator: Annotated[str, AfterValidator(describe_address)] | None = Field(
        None, description="what answers with the passages: an http(s) URL or module:attribute"
    )
    options: Annotated[dict[str, Any], AfterValidator(check_secret_references)] = Field(
        default_factory=dict, description="for an index of your own: what it is made with"
    )
    top_k: int = Field(5, ge=1, le=1000, description="passages a query")
    api_key: Annotated[str, AfterValidator(is_reference)] | None = Field(
        None, description="where the key of the endpoints is: env:NAME, or block:NAME"
    )
    concurrency: int = Field(8, ge=1, le=256, description="queries in flight")
    timeout: float = Field(30.0, gt=0, description="seconds a query may take")
    max_retries: int = Field(4, ge=0, description="how often a query is sent again after an error")


def parse_retriever(value: Any) -> Any:
    """An index by one word -> its options.

    >>> parse_retriever("http://localhost:9000/search")
    {'index': 'http://localhost:9000/search'}

    Raises:
        ConfigError: a host and a port, without a scheme.
    """
    if not isinstance(value, str):
        return value
    refuse_bare_host(value)
    return {"index": value}
