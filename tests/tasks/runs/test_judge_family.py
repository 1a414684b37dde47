"""A judge that judges answers of its own family: traces hold the model's name in a column of their own."""

import json

import pyarrow as pa

from tasks.runs.judge_family import warn_of_family


def test_answers_of_the_judges_family_are_counted_and_named() -> None:
    models = ["gpt-4o", "claude-4-sonnet", "gpt-4o", None, 7]
    texts = [None if name is None else json.dumps({"model": name}) for name in models]
    samples = [pa.table({"extras": pa.array([*texts, '{"other": "gpt-4o"}'], pa.string())})]
    (sentence,) = warn_of_family(samples, "gpt-5-mini")
    assert "gpt-5-mini judges 2 answers of gpt-4o." in sentence
    assert warn_of_family(samples, "Qwen/Qwen3-8B") == warn_of_family(samples, "minicheck-7b") == ()
