"""Where a store of answers is: what a user may write, and the form in which it travels between processes."""

from pathlib import Path
from urllib.parse import parse_qs, urlsplit

from metric_core.errors import ConfigError

_FILE = "sqlite:///"
_SERVERS = ("postgresql", "postgres", "postgresql+psycopg")
_SECRETS = ("password", "sslpassword")
_WANTED = "the store of answers must be a path of a SQLite file or a URL like postgresql://user@host/database"


def normalize_address(named: str) -> str:
    """The address of a store as settings carry it: free of secrets, and the same in every process.

    Args:
        named: a path of a SQLite file, a `sqlite:///` URL or a `postgresql://` URL.

    Raises:
        ConfigError: it is nothing of the kind, or it holds a password; the message does not repeat it.

    >>> normalize_address("postgresql://assay@db.example/answers")
    'postgresql://assay@db.example/answers'
    """
    if "://" not in named or named.startswith(_FILE):
        path = named.removeprefix(_FILE)
        if not path.strip():
            raise ConfigError(f"{_WANTED}; got an empty one")
        return str(Path(path).expanduser().absolute())
    scheme, _, rest = named.partition("://")
    if scheme not in _SERVERS:
        raise ConfigError(f"{_WANTED}; got one that begins with {scheme}://")
    # A password may hold characters that belong nowhere in a URL, so this looks at more than its proper place.
    if ":" in rest.rpartition("@")[0] or any(name in parse_qs(urlsplit(named).query) for name in _SECRETS):
        raise ConfigError(
            "the URL of the store of answers must hold no password, because it is written into run folders and "
            "records of runs; put the password into ~/.pgpass or into the environment variable PGPASSWORD"
        )
    return named


def engine_url(address: str) -> str:
    """The URL under which SQLAlchemy opens the store at an address.

    >>> engine_url("postgresql://assay@db.example/answers")
    'postgresql+psycopg://assay@db.example/answers'
    """
    scheme, divider, rest = address.partition("://")
    if not divider:
        return f"{_FILE}{address}"
    return f"postgresql+psycopg://{rest}" if scheme in _SERVERS else address
