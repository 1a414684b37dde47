"""Define what receives the results of runs."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from metric_core.errors import AssayError


class SinkError(AssayError):
    """Results that a sink does not have.

    Args:
        is_lasting: True if the sink works but refuses these results, so that it may still take those of other runs.
    """

    def __init__(self, message: str, *, is_lasting: bool = False) -> None:
        super().__init__(message)
        self.is_lasting = is_lasting


@dataclass(frozen=True, slots=True)
class Sink:
    """A receiver of the results of runs, such as a server that keeps them.

    Args:
        check: Function of an address, called before a run; it raises an AssayError if the address cannot be used, or if
            a package is missing.
        send: Function of an address and a run folder, called after a run. It returns in words what the sink got, and
            raises a SinkError if the results are to be sent again. The same results may be sent twice.
    """

    check: Callable[[str], None]
    send: Callable[[str, Path], str]
