"""Conversations are refused with what can be evaluated today, whatever form they have."""

import json
from pathlib import Path
from typing import Any

import pytest

from metric_core.errors import BadRowsError, SourceError
from tasks.sources import SourceOptions, read_samples
from tests.tasks.sources.helpers import write_lines

TURNS = [{"role": "user", "content": "Why?"}, {"role": "assistant", "content": "So."}]
RAGAS = [{"type": "human", "content": "Why?"}, {"type": "ai", "content": "So."}, {"type": "human", "content": "And?"}]
NEEDED = {"accuracy": ("user_input", "response")}


@pytest.mark.parametrize(("value", "messages"), [(TURNS, 2), (RAGAS, 3), (json.dumps(TURNS), 2)])
def test_a_conversation_in_a_text_column_is_refused(value: Any, messages: int, tmp_path: Path) -> None:
    source = write_lines(tmp_path / "a.jsonl", [{"user_input": value, "response": "So."}])
    with pytest.raises(BadRowsError) as error:
        list(read_samples(str(source), SourceOptions(), NEEDED))
    assert f"got a conversation of {messages} messages, wanted a text" in str(error.value)
    assert "samples with several turns are planned; today a sample is one question with one response" in str(
        error.value
    )


@pytest.mark.parametrize("required", [NEEDED, {}])
def test_a_source_of_conversations_alone_says_what_is_planned(required: Any, tmp_path: Path) -> None:
    source = write_lines(tmp_path / "a.jsonl", [{"messages": TURNS}])
    with pytest.raises(SourceError, match="Its column 'messages' seems to hold conversations: samples with several"):
        read_samples(str(source), SourceOptions(), required)


def test_texts_that_look_like_json_are_texts(tmp_path: Path) -> None:
    rows = [{"user_input": '[{"a": 1}]', "response": "[{"}]
    source = write_lines(tmp_path / "a.jsonl", rows)
    (table,) = list(read_samples(str(source), SourceOptions(), NEEDED))
    assert table["user_input"].to_pylist() == ['[{"a": 1}]']
