"""Errors of HTTP connections, named for people without what may be secret."""

import ssl

import httpx

from tasks.runtime.http_errors import name_http_error


def test_certificate_that_is_not_trusted_is_no_failed_connection() -> None:
    error = httpx.ConnectError("https://host/secret cannot be reached")
    cause = ssl.SSLCertVerificationError("[SSL: CERTIFICATE_VERIFY_FAILED]")
    cause.verify_message = "self-signed certificate"
    error.__cause__ = cause
    assert name_http_error(error) == "its certificate is not trusted: self-signed certificate"
    assert name_http_error(httpx.ConnectError("https://host/secret")) == "ConnectError"
