"""Send an alert to a recipient, again and again for a while, without waiting for one that hangs."""

import time
from collections.abc import Callable, Mapping
from contextvars import copy_context
from dataclasses import dataclass
from itertools import count

import httpx

from flows.alerting.alert import Alert
from flows.alerting.recipients import Recipient, RecipientError, default_file
from tasks.prefect_support.run_log import run_logger
from tasks.runtime.http_errors import name_http_error
from tasks.runtime.retry import Backoff
from tasks.runtime.threads import ThreadLimitError, start_thread

BACKOFF = Backoff(first=1.0, longest=10.0)
TRIES = 5
RUN_SECONDS = 45.0
"""Longest time that a run spends on the delivery of messages."""
NO_REPLY = "no reply"


@dataclass(frozen=True, slots=True)
class Delivery:
    """The delivery of an alert to one recipient.

    Args:
        channel: Name of the recipient.
        is_sent: True if the recipient accepted the alert.
        reply: The recipient's reply, or the reason why the alert could not be sent.
        is_lasting: True if another try would fail in the same way.
        retry_after: Seconds to wait before another try, if the recipient said so.
    """

    channel: str
    is_sent: bool
    reply: str
    is_lasting: bool = False
    retry_after: float | None = None


def try_once(recipient: Recipient, alert: Alert) -> Delivery:
    """Send an alert, and return what came back."""
    try:
        return Delivery(recipient.name, True, recipient.send(alert))
    except RecipientError as error:
        reply = str(error)
        return Delivery(recipient.name, False, reply, is_lasting=error.is_lasting, retry_after=error.retry_after)
    except Exception as error:  # noqa: BLE001 a failure of one recipient must not stop the others
        # The message of an HTTP error would repeat the URL, which may be a secret.
        is_http = isinstance(error, httpx.HTTPError)
        reason = name_http_error(error) if is_http else f"{type(error).__name__}: {error}"
        return Delivery(recipient.name, False, reason)


def try_repeatedly(attempt: Callable[[], Delivery], deadline: float) -> Delivery:
    """Return the first successful delivery, or the last one.

    Args:
        deadline: Time of `time.monotonic` after which there are no more tries.
    """
    for number in count(1):
        delivery = attempt()
        pause = max(BACKOFF.seconds(number), delivery.retry_after or 0.0)
        is_over = number >= TRIES or time.monotonic() + pause >= deadline
        if delivery.is_sent or delivery.is_lasting or is_over:
            break
        time.sleep(pause)
    return delivery


def run_beside(
    works: Mapping[str, Callable[[], object]], deadline: float, patience: Mapping[str, float]
) -> dict[str, BaseException]:
    """Do several pieces of work at the same time, and return when all are done or the time is over.

    Args:
        deadline: Time of `time.monotonic` after which no work sends anything more.
        patience: Seconds after that for which each is waited for, because the recipient may accept what is being sent.

    Returns:
        The errors that they raised, by their names.
    """
    errors: dict[str, BaseException] = {}

    def call(name: str, work: Callable[[], object]) -> None:
        try:
            work()
        except BaseException as error:  # noqa: BLE001 raised by the caller
            errors[name] = error

    # A copy of the context has the settings of Prefect, which blocks are read with.
    threads = {}
    for name, work in works.items():
        try:
            threads[name] = start_thread(f"alerts: {name}", copy_context().run, call, name, work)
        except ThreadLimitError:
            call(name, work)  # the others wait, but every recipient is sent to
    for name, thread in threads.items():
        thread.join(max(0.0, deadline + patience[name] - time.monotonic()))
    return dict(errors)


def write_to_file(alert: Alert) -> None:
    """Append an alert to the file of alerts that no recipient has accepted."""
    done = try_once(default_file(), alert)
    if not done.is_sent:
        run_logger().error(f"the alert cannot be written to the file of alerts: {done.reply}")
