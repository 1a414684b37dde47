"""The private and undocumented parts of other packages that are used exist, and a page lists them."""

import importlib
import re
from typing import Any

import pytest

from tasks.prefect_support import console_log
from tests.structure.house import ROOT

PAGE = (ROOT / "docs" / "design" / "dependencies.md").read_text(encoding="utf-8")
LISTED = re.findall(r"^\| `([\w.]+):([\w.]+)`", PAGE, re.MULTILINE)
OF_EXTRAS = ("opentelemetry",)


def test_the_page_has_the_table() -> None:
    assert len(LISTED) > 10


@pytest.mark.parametrize(("module", "name"), LISTED)
def test_each_listed_part_exists(module: str, name: str) -> None:
    if module.startswith(OF_EXTRAS):
        pytest.importorskip(module.partition(".")[0])
    found: Any = importlib.import_module(module)
    for each in name.split("."):
        found = getattr(found, each)


def test_the_queues_of_reports_to_a_prefect_server_are_where_they_were() -> None:
    logs: Any = importlib.import_module("prefect.logging.handlers").APILogWorker
    events: Any = importlib.import_module("prefect.events.worker").EventsWorker
    assert logs()._queue.empty()
    assert {base for base in logs.__mro__ if "_instances" in vars(base)} & {*events.__mro__}


def test_prefect_prints_about_a_failing_loop_with_a_function_that_can_be_replaced() -> None:
    loop = importlib.import_module("prefect.utilities.services").critical_service_loop
    assert {print, console_log._ignore} & {*loop.__defaults__}  # replaced where an earlier test has quieted Prefect
