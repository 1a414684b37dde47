"""Read the certificates that servers are checked against, equally for all clients of this package."""

import os
import ssl
from functools import lru_cache


def trusted_certificates() -> ssl.SSLContext:
    """Return a context with `SSL_CERT_FILE` and `SSL_CERT_DIR`, or else with the certificates of the system.

    Libraries differ: by itself aiohttp reads those of the system, httpx those of certifi, which lack the authority of a
    company. Without any on the system, as in a small container, they are those of certifi here, too.
    """
    return _read(os.environ.get("SSL_CERT_FILE"), os.environ.get("SSL_CERT_DIR"))


@lru_cache(maxsize=2)
def _read(_file: str | None, _folder: str | None) -> ssl.SSLContext:
    found = ssl.get_default_verify_paths()
    if any((found.cafile, found.capath)):
        return ssl.create_default_context()
    import certifi  # noqa: PLC0415 comes with httpx

    return ssl.create_default_context(cafile=certifi.where())
