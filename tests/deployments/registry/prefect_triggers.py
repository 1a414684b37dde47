"""Prefect's own evaluation of automations, in this process, with a clock that the test moves.

What takes days on a server takes seconds here: the code that decides whether an automation fires is the server's.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Sequence
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from uuid import UUID, uuid4

import prefect.types._datetime
import pytest
from prefect.events.schemas.automations import AutomationCore
from prefect.server.database import provide_database_interface
from prefect.server.database.configurations import AioSqliteConfiguration
from prefect.server.database.dependencies import temporary_database_config
from prefect.server.database.orm_models import Base
from prefect.server.events import triggers
from prefect.server.events.models import automations
from prefect.server.events.ordering import PRECEDING_EVENT_LOOKBACK, EventArrivedEarly, memory
from prefect.server.events.schemas.automations import Automation
from prefect.server.events.schemas.events import ReceivedEvent
from sqlalchemy import Connection

START = datetime(2026, 11, 16, 5, 58, tzinfo=UTC)
STEP = timedelta(seconds=10)
_FOLDER = TemporaryDirectory(prefix="triggers-")
_DATABASE = Path(_FOLDER.name, "own.db")
"""Database of this process, whose tables are created once."""


class PrefectTriggers:
    """The trigger services of a Prefect server.

    Args:
        automations: Automations that are evaluated.
        deployment: Id of the deployment that the events are about.
        patch: Replaces the clock and the actions of the server.
    """

    def __init__(self, automations: Iterable[AutomationCore], deployment: UUID, patch: pytest.MonkeyPatch) -> None:
        self.now = START
        self.told: list[tuple[str, datetime]] = []
        self._automations = list(automations)
        self._deployment = deployment
        self._sent: dict[UUID, UUID] = {}
        self._due: list[tuple[datetime, ReceivedEvent]] = []
        patch.setattr(prefect.types._datetime, "now", lambda *_zone: self.now)
        patch.setattr(triggers, "act", self._act)
        patch.setattr(triggers, "get_events_clock_offset", _no_offset)
        self._load_automations: Any = triggers.reconcile_automations
        patch.setattr(triggers, "reconcile_automations", _do_not_look)
        for lock in ("__automations_lock", "__events_clock_lock"):  # belong to the loop of an earlier test
            patch.setattr(triggers, lock, None)

    async def _act(self, firing: Any) -> None:
        self.told.append((firing.trigger.automation.name.rpartition(": ")[2], self.now))

    def send(self, after: timedelta, state: str, run: UUID | None = None, *, is_first: bool = False) -> None:
        """Send an event some time after the start.

        Args:
            after: Time since the start.
            state: Name of the state of a run, or name of another event of the deployment.
            run: Id of the run; None for an event that is about no run.
            is_first: True if the state follows one that the server sent no event of, less than five minutes before.
        """
        event = state if run is None else f"prefect.flow-run.{state}"
        resource = f"{state}.monitor" if run is None else f"prefect.flow-run.{run}"
        related = {
            "prefect.resource.role": "deployment",
            "prefect.resource.id": f"prefect.deployment.{self._deployment}",
        }
        content: dict[str, Any] = {
            "id": uuid4(),
            "event": event,
            "resource": {"prefect.resource.id": resource},
            "related": [related],
        }
        if run is not None:
            follows = uuid4() if is_first else self._sent.get(run)
            content |= {"follows": follows, "id": uuid4()}
            self._sent[run] = content["id"]
        time = START + after
        self._due.append((time, ReceivedEvent.model_validate(content | {"occurred": time, "received": time})))

    def run_until(self, after: timedelta) -> list[tuple[str, int]]:
        """Let the services work until some time after the start.

        Returns:
            The reports: the kind, and the minute after the start.
        """
        asyncio.run(self._run(START + after))
        return [(kind, int((time - START).total_seconds() // 60)) for kind, time in self.told]

    async def _run(self, until: datetime) -> None:
        memory.CausalOrdering.clear_all_scopes()
        # Not the database of a setting: Prefect keeps the first one that a process uses, which may be a file of others.
        with temporary_database_config(AioSqliteConfiguration(connection_url=f"sqlite+aiosqlite:///{_DATABASE}")):
            if not _DATABASE.exists():
                async with (await provide_database_interface().engine()).begin() as connection:
                    await connection.run_sync(_create_tables)
            await triggers.reset()
            triggers.automation_state_snapshot = None
            await self._replace_automations()
            services: Any = triggers  # Prefect's types of it are not those of its callers
            waiting = sorted(self._due, key=lambda each: each[0])
            while self.now < until:
                self.now = max(self.now + STEP, min(until, *self._next_times(waiting)))
                while waiting and waiting[0][0] <= self.now:
                    await _ignore_early(triggers.reactive_evaluation, waiting.pop(0)[1])
                await services.periodic_evaluation(self.now)
                await triggers.evaluate_proactive_triggers()

    @staticmethod
    def _next_times(waiting: Sequence[tuple[datetime, ReceivedEvent]]) -> list[datetime]:
        """Return the times at which there may be something to do."""
        lost = memory.CausalOrdering(scope="triggers")._waitlist.values()
        times = [*(each + PRECEDING_EVENT_LOOKBACK for each in lost), *triggers.next_proactive_runs.values()]
        return [*times, *(time for time, _ in waiting[:1])]

    async def _replace_automations(self) -> None:
        store: Any = automations
        async with store.automations_session(begin_transaction=True) as session:
            await store.delete_automations_for_workspace(session)  # those of an earlier test
            for each in self._automations:
                content = each.model_dump(mode="json") | {"id": uuid4()}
                await store.create_automation(session, Automation.model_validate(content))
        await self._load_automations(force=True)


def _create_tables(connection: Connection) -> None:
    """Create the tables of triggers; migrations, which create all, take seconds."""
    prefixes = ("automation", "composite_trigger")
    Base.metadata.create_all(
        connection, [table for name, table in Base.metadata.tables.items() if name.startswith(prefixes)]
    )


async def _do_not_look() -> bool:
    """Return whether automations were changed, for which a server looks at each evaluation: none is here."""
    return False


async def _no_offset() -> float:
    """Return how far the events are behind: a server gets further ones all the time."""
    return 0.0


async def _ignore_early(evaluate: Callable[[ReceivedEvent], Awaitable[None]], event: ReceivedEvent) -> None:
    with suppress(EventArrivedEarly):  # is evaluated later
        await evaluate(event)
