"""JSON is read whole, out of a fence or out of prose, and never completed."""

from typing import Any

import pytest

from metric_core.prompts.replies import parse_json_reply


def test_a_complete_value_is_read() -> None:
    cases: list[tuple[str, Any]] = [
        ('{"score": 4}', {"score": 4}),
        (' \n["a", "b"]\n', ["a", "b"]),
        ("4", 4),
        ('```json\n{"score": 4}\n```', {"score": 4}),
        ('This is it:\n```\n{"score": 4}\n```\nAnything else?', {"score": 4}),
        ('I {weighed} it up.\n```json\n{"score": 4}\n```', {"score": 4}),
        ('As [1] says:\n```json\n{"score": 4}\n```', {"score": 4}),
        ('Sure. {"a": [1, {"b": "}"}]} Done.', {"a": [1, {"b": "}"}]}),
        ('```json\n{"code": "```"}\n```', {"code": "```"}),
        ('```json\n{"score": 4}', {"score": 4}),
        ('{"text": "a \\"quoted\\" { word"}', {"text": 'a "quoted" { word'}),
    ]
    for text, value in cases:
        assert parse_json_reply(text) == value, (text, value)


def test_nothing_is_guessed() -> None:
    for text in [
        "",
        "That is not possible.",
        '{"claims": ["a", "b',
        '{"claims": [{"text": "a"}, {"text": "b"}',
        'Here: [{"text": "a"}, {"te',
        '```json\n{"claims": ["a"\n```',
        '{"score": 4} or rather {"score": 2}',
        '{"score": 1}? No:\n```json\n{"score": 4}\n```',
        '```json\n{"score": 4}\n```\nor rather {"score": 2}',
        '{"score": 4, "score": 2}',
        '[1] says so: {"score": 4}',
        '{"score": NaN}',
        '{"score": 4,}',
        "{'score': 4}",
        "[" * 100_000,
    ]:
        with pytest.raises(ValueError, match="no complete JSON in the reply"):
            parse_json_reply(text)
