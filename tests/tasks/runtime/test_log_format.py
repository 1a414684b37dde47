"""Logs that programs read."""

import io
import json
import logging
from logging.config import DictConfigurator
from typing import Any

import pytest
from prefect.logging.configuration import DEFAULT_LOGGING_SETTINGS_PATH, load_logging_config

from tasks.runtime.log_format import log_variables


@pytest.mark.parametrize("name", ["console", "debug"])
def test_each_record_is_a_json_object_on_a_line(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    for variable, value in log_variables("json").items():
        monkeypatch.setenv(variable, value)
    stream = io.StringIO()
    loaded = load_logging_config(DEFAULT_LOGGING_SETTINGS_PATH)
    loaded["handlers"][name]["stream"] = stream
    configurator: Any = DictConfigurator(loaded)
    formatters = configurator.config["formatters"]
    formatters["json"] = configurator.configure_formatter(formatters["json"])
    handler = configurator.configure_handler(configurator.config["handlers"][name])
    text = 'first line\nsecond "line" [red]in brackets[/red] ' + "long " * 100
    handler.emit(logging.makeLogRecord({"name": "tasks", "msg": text, "levelname": "WARNING", "flow_run_id": "x1"}))
    (line,) = stream.getvalue().splitlines()
    record = json.loads(line)
    assert (record["msg"], record["levelname"], record["flow_run_id"]) == (text, "WARNING", "x1")
