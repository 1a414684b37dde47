"""Automations on a Prefect server: which of them are left over."""

from types import SimpleNamespace
from typing import Any
from uuid import UUID, uuid4

import pytest
from prefect.events.actions import RunDeployment

from deployments.registry import automations
from deployments.registry.automations import stale_automations


def deployment(name: str) -> Any:
    return SimpleNamespace(id=uuid4(), name=name)


def automation(name: str, of: UUID) -> Any:
    return SimpleNamespace(id=uuid4(), name=f"rag-assay: {name}", actions=[RunDeployment(deployment_id=of)])


class Server:
    """A server with a deployment more from its second answer on, and its automation."""

    def __init__(self) -> None:
        self.gone = automation("gone", uuid4())
        self._deployments = [deployment("monitor-a")]
        self._automations = [automation("monitor-a", self._deployments[0].id), self.gone]
        self._calls = 0

    def _answer(self, found: list[Any]) -> list[Any]:
        self._calls += 1
        if self._calls == 2:  # a deployment is made, then its automation
            new = deployment("rerun-crashed-b")
            self._deployments.append(new)
            self._automations.append(automation(new.name, new.id))
        return found

    def read_deployments(self, _client: object) -> list[Any]:
        return list(self._answer(self._deployments))

    def read_automations(self, _client: object) -> list[Any]:
        return list(self._answer(self._automations))


def test_automations_of_a_deployment_that_is_made_meanwhile_are_not_left_over(monkeypatch: pytest.MonkeyPatch) -> None:
    server, client = Server(), SimpleNamespace()
    monkeypatch.setattr(automations, "read_deployments", server.read_deployments)
    monkeypatch.setattr(automations, "_read_automations", server.read_automations)
    assert stale_automations(client) == [server.gone]  # type: ignore[arg-type] # no server is asked
    assert stale_automations(client) == [server.gone]  # type: ignore[arg-type] # no server is asked
