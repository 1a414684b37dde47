"""Check a message of the OpenTelemetry protocol that was received, so that what is kept can be read."""

import json
from typing import Any

from tasks.runtime.wording import describe_value
from tasks.sources.readers.bad_rows import InvalidRowError
from tasks.sources.traces.record_forms import Spans


def check_json_message(message: bytes) -> bool:
    """Check a message in JSON, as a run would read it.

    Args:
        message: The message, in UTF-8.

    Returns:
        True if it has anything to read.

    Raises:
        InvalidRowError: The message is not JSON, or not an ExportTraceServiceRequest whose spans can be read.
    """
    try:
        record: Any = json.loads(message.decode(), parse_constant=_refuse_constant)
    except (ValueError, RecursionError) as error:
        raise InvalidRowError(f"the message is not JSON: {error}") from error
    if not isinstance(record, dict):
        raise InvalidRowError(f"got {describe_value(record)}, wanted an ExportTraceServiceRequest")
    if not record:
        return False
    if "resourceSpans" not in record:
        raise InvalidRowError("the message has no resourceSpans")
    problem = Spans().add(record)
    if problem is not None:
        raise InvalidRowError(problem.problem, problem.hint)
    return bool(record["resourceSpans"])


def _refuse_constant(name: str) -> None:
    raise ValueError(f"{name} is no number of JSON")
