"""Check the address of an OTLP endpoint."""

from urllib.parse import urlsplit


def check_endpoint(endpoint: str) -> str:
    """Return the address of an OTLP endpoint as it was given.

    Raises:
        ValueError: It is not an http(s) URL, or holds a user, a password or a query, which belong into the variables
            of OpenTelemetry.

    >>> check_endpoint("http://localhost:4318")
    'http://localhost:4318'
    """
    parts = urlsplit(endpoint)
    if parts.username or parts.password or parts.query or parts.fragment:
        raise ValueError(
            "the URL of an OTLP endpoint must hold no user, password or query; put headers with keys into the "
            "environment variable OTEL_EXPORTER_OTLP_HEADERS"
        )
    if parts.scheme not in ("http", "https") or not parts.hostname:
        shown = "something with an @, not repeated here" if "@" in endpoint else repr(endpoint)
        raise ValueError(f"an OTLP endpoint looks like http://localhost:4318, got {shown}")
    return endpoint
