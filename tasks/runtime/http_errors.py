"""Name errors of HTTP connections without what their messages may contain, such as URLs with secrets."""

import ssl


def name_http_error(error: BaseException) -> str:
    """Return the kind of an error in a few words.

    A certificate that is not trusted is named as such, with the reason: nobody would look for it behind a failed
    connection.

    >>> import httpx
    >>> name_http_error(httpx.ReadTimeout("https://host/secret"))
    'ReadTimeout'
    """
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, ssl.SSLCertVerificationError):
            return f"its certificate is not trusted: {cause.verify_message or 'no reason given'}"
        cause = cause.__cause__ or cause.__context__
    return type(error).__name__
