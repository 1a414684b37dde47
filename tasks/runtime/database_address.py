"""Validate and normalize the address of a database: the answer cache, or the history."""

from pathlib import Path
from urllib.parse import parse_qs, urlsplit

from metric_core.errors import ConfigError

_FILE = "sqlite:///"
_SERVERS = ("postgresql", "postgres", "postgresql+psycopg")
_SECRETS = ("password", "sslpassword")


def normalize_address(
    address: str, database: str = "answer cache", *, allow_password: bool = False, otherwise: str = ""
) -> str:
    """Return the address of a database in the form that settings carry: absolute and free of secrets.

    Args:
        address: Path of a SQLite file, a `sqlite:///` URL or a `postgresql://` URL.
        database: Purpose of the database, for messages.
        allow_password: True for an address that is a secret itself, and is written nowhere.
        otherwise: Further advice to people who give a password.

    Raises:
        ConfigError: The address is none of these, or contains a password; the message does not repeat it.

    >>> normalize_address("postgresql://assay@db.example/answers")
    'postgresql://assay@db.example/answers'
    """
    wanted = f"the {database} must be the path of a SQLite file or a URL like postgresql://user@host/database"
    if "://" not in address or address.startswith(_FILE):
        path = address.removeprefix(_FILE)
        if not path.strip():
            raise ConfigError(f"{wanted}; got an empty address")
        return str(Path(path).expanduser().absolute())
    scheme, _, rest = address.partition("://")
    if scheme not in _SERVERS:
        raise ConfigError(f"{wanted}; got an address that begins with {scheme}://")
    # A password may contain characters that are invalid in a URL and confuse its parser, so the whole authority and
    # the query are searched.
    has_password = ":" in rest.rpartition("@")[0] or any(name in parse_qs(urlsplit(address).query) for name in _SECRETS)
    if has_password and not allow_password:
        raise ConfigError(
            f"the URL of the {database} must not contain a password, because it is written into run folders and "
            f"run records; put the password into ~/.pgpass or into the environment variable PGPASSWORD{otherwise}"
        )
    return address


def engine_url(address: str) -> str:
    """Return the URL under which SQLAlchemy opens the database at an address.

    >>> engine_url("postgresql://assay@db.example/answers")
    'postgresql+psycopg://assay@db.example/answers'
    """
    scheme, divider, rest = address.partition("://")
    if not divider:
        return f"{_FILE}{address}"
    return f"postgresql+psycopg://{rest}" if scheme in _SERVERS else address
