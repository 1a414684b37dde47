"""Webhooks that a Prefect server calls at the same time do not end each other where rag-assay is installed."""

import asyncio
import time
from collections.abc import Mapping
from importlib.metadata import entry_points
from typing import Any

import httpx
import pytest
from prefect.blocks import webhook
from pydantic import SecretStr

from rag_assay._prefect_webhooks import OpenClient
from tests.json_endpoint import JsonEndpoint


def call_at_once(url: str, count: int) -> list[object]:
    """Call a webhook several times at the same time, and return the status of each reply, or the error."""

    async def call() -> list[object]:
        calls = (webhook.Webhook(url=SecretStr(url)).call({"number": number}) for number in range(count))
        return [
            each if isinstance(each, BaseException) else each.status_code
            for each in await asyncio.gather(*calls, return_exceptions=True)
        ]

    return asyncio.run(call())


def answer_in_order(content: Mapping[str, Any], before: int) -> tuple[Any, ...]:
    """Answer the first call while the others wait."""
    del before
    time.sleep(0.1 * content["number"])
    return 200, {}


def test_a_call_that_ends_leaves_the_others_alone() -> None:
    assert vars(webhook)["AsyncClient"] is OpenClient
    with JsonEndpoint(answer_in_order) as endpoint:
        assert call_at_once(endpoint.url, 3) == [200, 200, 200]


def test_prefect_itself_still_needs_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(webhook, "AsyncClient", httpx.AsyncClient)
    with JsonEndpoint(answer_in_order) as endpoint:
        assert call_at_once(endpoint.url, 3) != [200, 200, 200], "the module can be deleted"


def test_a_server_loads_it_at_its_start() -> None:
    (found,) = (each for each in entry_points(group="prefect.collections") if each.name == "rag_assay")
    assert found.value == "rag_assay._prefect_webhooks"
