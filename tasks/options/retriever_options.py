"""Declare the options of the index from which contexts are fetched."""

from typing import Annotated, Any
from urllib.parse import urlsplit

from pydantic import AfterValidator, BeforeValidator, ConfigDict, Field

from tasks.options.option import Option, OptionGroup
from tasks.options.server_addresses import refuse_bare_host
from tasks.plugins.instantiate import check_secret_references
from tasks.runtime.credentials import check_reference


def describe_address(name: str) -> str:
    """Return an http(s) URL without secrets, or the name of an object: `module:attribute` or an entry point.

    Raises:
        ValueError: The URL has another scheme, or a user, password or query.

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


class RetrieverOptions(OptionGroup, affects_scores=True):
    """Options of the index that contexts are fetched from, and of the generator that answers with them."""

    model_config = ConfigDict(hide_input_in_errors=True)

    index: Annotated[
        Annotated[str, AfterValidator(describe_address)],
        Option(
            "An http(s) URL that takes a query and returns passages, or module:attribute of a retriever.",
            holds="secret",
            min_length=1,
        ),
    ]
    generator: Annotated[
        Annotated[str, AfterValidator(describe_address)] | None,
        Option(
            "Generator of the responses from the passages: an http(s) URL or module:attribute. Default: the "
            "responses of the data.",
            holds="secret",
        ),
    ] = None
    options: Annotated[
        Annotated[dict[str, Any], AfterValidator(check_secret_references)],
        Option("For a user-defined retriever: its arguments, with secrets as env:NAME or block:NAME.", holds="secret"),
    ] = Field(default_factory=dict)
    top_k: Annotated[int, Option("Number of passages per query; a longer reply is cut.", ge=1, le=1000)] = 5
    api_key: Annotated[
        Annotated[str, AfterValidator(check_reference)] | None,
        Option("Reference to the key of the endpoints: env:NAME or block:NAME.", holds="secret", affects_scores=False),
    ] = None
    concurrency: Annotated[int, Option("Maximum number of queries in flight.", affects_scores=False, ge=1, le=256)] = 8
    timeout: Annotated[float, Option("Seconds that a query may take.", affects_scores=False, gt=0)] = 30.0
    max_retries: Annotated[
        int,
        Option(
            "Number of retries after the status 429 or 5xx, a lost connection or a timeout.", affects_scores=False, ge=0
        ),
    ] = 4


def parse_retriever(value: Any) -> Any:
    """Return the options of an index that is named in one word.

    >>> parse_retriever("http://localhost:9000/search")
    {'index': 'http://localhost:9000/search'}

    Raises:
        ConfigError: The word is a host and a port without a scheme.
    """
    if not isinstance(value, str):
        return value
    refuse_bare_host(value)
    return {"index": value}


class RetrieverChoice(OptionGroup, affects_scores=True):
    """The option that says which index the contexts are fetched from."""

    retriever: Annotated[
        Annotated[RetrieverOptions, BeforeValidator(parse_retriever)] | None,
        Option(
            "Index from which the contexts of the user questions are fetched: an http(s) URL or module:attribute.",
            examples=["http://localhost:9000/search"],
        ),
    ] = None
