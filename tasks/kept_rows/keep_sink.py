"""Let runs keep what they find: a sink whose address is a test set, with conditions and a limit."""

from pathlib import Path
from urllib.parse import parse_qs

from metric_core.errors import ConfigError
from tasks.kept_rows.keep import MOST, KeepRequest, keep_rows
from tasks.kept_rows.kept_row import RowState
from tasks.reports.exports.sink import Sink

_NAMES = ("where", "most", "chunks")


def parse_address(address: str, run: Path) -> KeepRequest:
    """Return what an address such as `set.jsonl?where=failed&most=50` asks for.

    The texts of a run are redacted already.

    >>> request = parse_address("set.jsonl?where=failed&where=faithfulness<0.5&most=50", Path("run"))
    >>> str(request.to), request.where, request.most
    ('set.jsonl', ['failed', 'faithfulness<0.5'], 50)

    Raises:
        ConfigError: It has another form.
    """
    path, _, query = address.partition("?")
    values = parse_qs(query, keep_blank_values=True)
    [most, *more] = values.get("most", [str(MOST)])
    if not path or not set(values) <= {*_NAMES} or more or not most.isdecimal():
        raise ConfigError(
            f"the address of a test set is a file and what to keep: set.jsonl?where=failed&most=50, got {address}"
        )
    return KeepRequest(run, Path(path), values.get("where", []), values.get("chunks", [None])[0], most=int(most))


def _send(address: str, run: Path) -> str:
    result = keep_rows(parse_address(address, run))
    states = ", ".join(f"{result.states[state]:,} {state}" for state in RowState)
    return f"{len(result.new):,} rows; the set has {states}"


def _check(address: str) -> None:
    parse_address(address, Path())


KEEP = Sink(_check, _send)
