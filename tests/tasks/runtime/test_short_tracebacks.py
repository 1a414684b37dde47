"""Errors that the user can fix end at the caller; a bug keeps its frames."""

import traceback

import pytest

from metric_core.errors import ConfigError
from tasks.runtime.short_tracebacks import shortens_tracebacks


def fail(error: Exception) -> None:
    try:
        dict[str, int]()["inner"]
    except KeyError as inner:
        raise error from inner


call = shortens_tracebacks(fail)


def test_an_error_for_the_user_ends_at_the_caller() -> None:
    with pytest.raises(ConfigError) as caught:
        call(ConfigError("no such file"))
    assert [frame.name for frame in traceback.extract_tb(caught.value.__traceback__)][1:] == ["call"]
    assert caught.value.__cause__ is None


def test_a_bug_keeps_its_frames() -> None:
    with pytest.raises(ZeroDivisionError) as caught:
        call(ZeroDivisionError())
    assert [frame.name for frame in traceback.extract_tb(caught.value.__traceback__)][1:] == ["call", "fail"]
