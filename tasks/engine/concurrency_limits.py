"""Limit how many stages of all runs may ask a judge at the same time.

A judge whose settings have `max_concurrent_stages` has a global concurrency limit on the Prefect server. The name of
the limit is derived from the model and its addresses, so that configurations with the same judge share it. A stage
acquires a slot with a lease before it asks; when a process is killed, its slot becomes free when the lease ends.
"""

import hashlib
import logging
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from functools import partial

from prefect.client.orchestration import SyncPrefectClient, get_client
from prefect.client.schemas.actions import GlobalConcurrencyLimitCreate
from prefect.concurrency.sync import concurrency
from prefect.exceptions import ObjectAlreadyExists, ObjectNotFound

from metric_core.prompts.judge_questions import Kind
from tasks.models.judges.protocol import Judge
from tasks.models.judges.routed_judge import settings_for
from tasks.options.judge_options import SingleJudgeSettings
from tasks.options.judged_settings import JudgedSettings
from tasks.options.settings import Settings
from tasks.prefect_support.patience import is_unavailable, wait_for_server

_logger = logging.getLogger(__name__)

LEASE_SECONDS = 60.0
"""Seconds for which a killed process holds its slot; the minimum that Prefect accepts."""


def limit_name(judge: SingleJudgeSettings) -> str:
    """Return the name of a judge's limit.

    >>> limit_name(SingleJudgeSettings.model_validate({"backend": "server", "server": {"urls": ["http://gpu:8000/v1"]}}))
    'assay-judge-server-...'
    """
    server = judge.server
    model = judge.backend if server is None else server.model or judge.backend
    where = [] if server is None else sorted(server.urls)
    digest = hashlib.sha256(repr((judge.backend, model, where)).encode()).hexdigest()[:8]
    return f"assay-judge-{re.sub(r'[^a-z0-9]+', '-', model.lower()).strip('-')}-{digest}"


def limits_of(judges: Iterable[SingleJudgeSettings]) -> dict[str, int]:
    """Return a mapping from the names of the limits of judges to their numbers of slots."""
    return {
        limit_name(judge): judge.max_concurrent_stages for judge in judges if judge.max_concurrent_stages is not None
    }


def create_limits(judges: Iterable[SingleJudgeSettings], *, update: bool) -> dict[str, int]:
    """Create the limits of judges on the Prefect server; leave existing ones unless `update` is set.

    Args:
        update: If true, set existing limits to the configured number of slots.

    Returns:
        A mapping from the name of each limit to its number of slots.
    """
    limits = limits_of(judges)
    if not limits:
        return {}
    with get_client(sync_client=True) as client:
        for name, slots in limits.items():
            create = partial(_create_limit, client, name, slots, update)
            create() if update else wait_for_server(create)
    return limits


def _create_limit(client: SyncPrefectClient, name: str, slots: int, update: bool) -> None:
    if update:
        client.upsert_global_concurrency_limit_by_name(name, slots)
        return
    try:
        client.read_global_concurrency_limit_by_name(name)
    except ObjectNotFound:
        with suppress(ObjectAlreadyExists):  # by another run in the meantime
            client.create_global_concurrency_limit(GlobalConcurrencyLimitCreate(name=name, limit=slots))


@contextmanager
def hold_slot(settings: Settings, kinds: Sequence[Kind], open_judge: Callable[[], Judge]) -> Iterator[None]:
    """Wait for a slot at each judge that a stage asks, and hold it; do nothing for judges without a limit.

    Args:
        kinds: Kinds of questions that the stage may ask.
        open_judge: Function that returns the judge of the stage; called only if a judge has a limit.

    Raises:
        ConcurrencySlotAcquisitionError: The server has no limit of that name.
    """
    names = []
    if isinstance(settings, JudgedSettings) and limits_of(settings.judges):
        judge = open_judge()
        names = sorted(limits_of(each for kind in kinds for each in settings_for(settings, judge, kind)))
    if not names:
        yield
        return
    slot = ExitStack()
    wait_for_server(
        lambda: slot.enter_context(
            concurrency(names, strict=True, lease_duration=LEASE_SECONDS, raise_on_lease_renewal_failure=False)
        )
    )
    try:
        yield
    finally:
        _give_back(slot)


def _give_back(slot: ExitStack) -> None:
    """Give a slot back; one that cannot be given back becomes free when its lease ends, so no stage fails for it."""
    try:
        slot.close()
    except Exception as error:
        if not is_unavailable(error):
            raise
        _logger.warning(
            "a slot of a judge could not be given back, because the Prefect server does not answer (%s); it becomes "
            "free within %g s",
            type(error).__name__,
            LEASE_SECONDS,
        )
