"""Raise errors that the user can fix without the frames of the package, which would not help."""

from collections.abc import Callable
from functools import wraps
from typing import ParamSpec, TypeVar

from metric_core.errors import AssayError

P = ParamSpec("P")
T = TypeVar("T")


def shortens_tracebacks(function: Callable[P, T]) -> Callable[P, T]:
    """Return a function whose errors for the user have a traceback that ends at its caller, in pytest and elsewhere."""

    @wraps(function)
    def call(*args: P.args, **kwargs: P.kwargs) -> T:
        __tracebackhide__ = True
        try:
            return function(*args, **kwargs)
        except AssayError as error:
            raise error.with_traceback(None) from None

    return call
