"""Read secrets by reference: a configuration names a secret, and the code that needs it reads it at each use.

Therefore a secret is never part of a configuration, run folder, key, run parameter or message.
"""

import os
import re

from metric_core.errors import ConfigError

WANTED = "env:NAME (an environment variable) or block:NAME (a Secret block of the Prefect server)"
_REFERENCE = re.compile(r"(env|block):([^\s:]+)")
_PASSWORD = re.compile(r"://[^/:@\s]*:(?!\d+(?:[/?#]|$))[^@\s]*@|https?://[^/?#\s]*@")
_SIGNED = re.compile(r"[?&][^=&]*(?:sig|signature|token|password|secret|credential|api_?key)=", re.IGNORECASE)


def _read_variable(name: str) -> str:
    secret = os.environ.get(name, "").strip()
    if not secret:
        raise ConfigError(f"env:{name} names an environment variable that is not set or empty; set it to the secret")
    return secret


def _read_block(name: str) -> str:
    from tasks.runtime.secret_blocks import read_secret_block  # noqa: PLC0415 loads Prefect

    return read_secret_block(name)


def is_reference(text: str) -> bool:
    """Return whether a text has the form of a reference to a secret.

    >>> is_reference("env:JUDGE_KEY"), is_reference("sk-123")
    (True, False)
    """
    return _REFERENCE.fullmatch(text) is not None


def check_reference(text: str) -> str:
    """Return a reference to a secret after checking it. An error does not repeat the text, which may be the secret.

    Raises:
        ValueError: The text is not a reference.

    >>> check_reference("env:JUDGE_KEY")
    'env:JUDGE_KEY'
    >>> check_reference("sk-123")
    Traceback (most recent call last):
        ...
    ValueError: a secret is given by reference: env:NAME ... or block:NAME ...; got something else, not repeated here
    """
    if not is_reference(text):
        raise ValueError(f"a secret is given by reference: {WANTED}; got something else, not repeated here")
    return text


def refuse_secrets(address: str) -> str:
    """Return an address of data after checking that it holds no secret, because it is written into run folders.

    Args:
        address: Path or URL. The message does not repeat it.

    Raises:
        ValueError: The address has a password, or a signature or key in its query.

    >>> refuse_secrets("s3://bucket/answers.jsonl")
    's3://bucket/answers.jsonl'
    >>> refuse_secrets("sftp://me:hunter2@host/answers.jsonl")
    Traceback (most recent call last):
        ...
    ValueError: the URL must hold no password, ...
    """
    if _PASSWORD.search(address) or _SIGNED.search(address):
        raise ValueError(
            "the URL must hold no password, signature or key, because it is written into run folders and records of "
            "runs; put it where the storage's library reads it: environment variables, its files or ~/.config/fsspec"
        )
    return address


def check_variable(reference: str) -> None:
    """Check that the environment variable of a reference is set. A reference to a block is not checked.

    Raises:
        ConfigError: The reference names an environment variable that is not set or empty.
    """
    kind, _, name = reference.partition(":")
    if kind == "env":
        _read_variable(name)


def read_secret(reference: str) -> str:
    """Read the secret that a reference names, without storing it.

    Raises:
        ConfigError: The text is not a reference, or the secret does not exist.
    """
    try:
        kind, _, name = check_reference(reference).partition(":")
    except ValueError as error:
        raise ConfigError(str(error)) from error
    return _read_block(name) if kind == "block" else _read_variable(name)


def mask_url(url: str) -> str:
    """Return an API URL for messages, without a user and password, whether these are encoded correctly or not.

    Args:
        url: API URL.

    >>> mask_url("https://me:hunter2@prefect.example/api"), mask_url("http://me:hun/ter2@prefect.example/api")
    ('https://prefect.example/api', 'http://prefect.example/api')
    """
    scheme, separator, rest = url.partition("://")
    return f"{scheme}{separator}{rest.rpartition('@')[2]}"
