"""Filters, samples and repeated traces."""

from datetime import UTC, datetime
from typing import Any

import pytest
from pydantic import ValidationError

from tasks.options.trace_options import TraceSettings
from tasks.sources.traces.assembly import Trace
from tasks.sources.traces.selection import select

NOW = datetime(2026, 5, 2, tzinfo=UTC)


def traces(count: int, **columns: Any) -> list[Trace]:
    return [
        Trace(f"t{n}", NOW.timestamp() - 3600 * n, [{"row_id": f"t{n}", "user_input": f"Why {n}?", **columns}])
        for n in range(count)
    ]


def choose(given: list[Trace], **settings: Any) -> list[str]:
    return [trace.trace_id for trace in select(given, TraceSettings(**settings), NOW)[0]]


def test_a_sample_is_seeded_and_hardly_changes_as_traces_are_added() -> None:
    before, after = traces(200), traces(220)
    first = choose(before, sample=50)
    assert len(first) == 50
    assert first == choose(list(reversed(before)), sample=50)[::-1]
    assert first != choose(before, sample=50, seed=1)
    assert set(choose(after, sample=50)) - set(first) <= {trace.trace_id for trace in after[200:]}
    assert set(choose(before, sample=10)) <= set(first)


def test_a_share_keeps_every_trace_that_it_had() -> None:
    before = choose(traces(400), sample=0.25)
    assert 70 < len(before) < 130
    assert [each for each in choose(traces(500), sample=0.25) if each in {f"t{n}" for n in range(400)}] == before
    assert choose(traces(5), sample=50) == [f"t{n}" for n in range(5)]


@pytest.mark.parametrize("since", ["3h", "2026-05-01T21:00:00", "2026-05-01T23:00:00+02:00", "180m"])
def test_since(since: str) -> None:
    assert choose(traces(10), since=since) == ["t0", "t1", "t2", "t3"]


def test_where() -> None:
    cases: list[tuple[dict[str, Any], bool]] = [
        ({"service.name": "prod"}, True),
        ({"service.name": "test"}, False),
        ({"service.name": ["test", "prod"]}, True),
        ({"metadata.customer": "acme", "tag.tags": "b"}, True),
        ({"metadata.customer": "acme", "tag.tags": "c"}, False),
        ({"metadata.size": "3"}, True),
        ({"metadata.size": 3}, True),
        ({"metadata.none": "x"}, False),
    ]
    for where, fits in cases:
        columns = {"service.name": "prod", "metadata": {"customer": "acme", "size": 3}, "tag.tags": ["a", "b"]}
        assert bool(choose(traces(1, **columns), where=where)) is fits, (where, fits)


def test_repeated_questions_and_repeated_content() -> None:
    questions = ["Why?", "why? ", "How?", "Why?"]
    given = [
        Trace(f"t{n}", n, [{"user_input": text, "response": "So." if n != 3 else "Thus."}])
        for n, text in enumerate(questions)
    ]
    assert choose(given, deduplicate="question") == ["t0", "t2"]
    assert choose(given, deduplicate="content") == ["t0", "t2", "t3"]
    assert choose(given) == ["t0", "t1", "t2", "t3"]


def test_each_rule_says_what_it_left_out() -> None:
    settings = TraceSettings(since="9h", where={"row_id": ["t0", "t1", "t2", "t3"]}, sample=2)
    assert select(traces(12), settings, NOW)[1] == [
        "2 of 12 traces are left out by since",
        "6 of 10 traces are left out by where",
        "2 of 4 traces are left out by sample",
    ]


NO_SAMPLES = (0, "0", "0.0", "0%", -1, "-0.5", 1.5, "1.5", "2.0", "101%", "many", "", "1e3", True, float("nan"), "1/2")


def test_settings_that_are_refused() -> None:
    cases: list[tuple[dict[str, Any], str]] = [
        *(({"sample": sample}, "expected a number of traces, at least 1") for sample in NO_SAMPLES),
        ({"sample": 200.0}, r"without a decimal point \(200\), or a share"),
        ({"since": "yesterday"}, "a date"),
        ({"where": "service.name"}, "name=value"),
        ({"deduplicate": "all"}, "'off', 'question' or 'content'"),
        ({"samples": 2}, "Extra inputs"),
    ]
    for options, problem in cases:
        with pytest.raises(ValidationError, match=problem):
            TraceSettings(**options)


def test_settings_as_the_command_line_gives_them() -> None:
    settings = TraceSettings.model_validate({"sample": "200", "where": "service.name=prod,user.id=u1"})
    assert (settings.sample, settings.where) == (200, {"service.name": "prod", "user.id": "u1"})


def test_a_sample_is_a_number_or_a_share_of_traces() -> None:
    cases: list[tuple[Any, float | None]] = [
        *((1, 1), ("1", 1), (" 200 ", 200), (None, None)),
        *((0.1, 0.1), ("0.1", 0.1), (".1", 0.1), ("10%", 0.1), ("2.5 %", 0.025)),
        *((1.0, None), ("1.0", None), ("1.", None), ("100%", None)),
    ]
    for given, sample in cases:
        settings = TraceSettings.model_validate({"sample": given})
        assert settings.sample == sample, (given, sample)
        assert type(settings.sample) is type(sample), (given, sample)
        assert TraceSettings.model_validate_json(settings.model_dump_json()) == settings, (given, sample)
        if sample in {1, 200, None}:
            assert len(choose(traces(20), sample=given)) == (1 if sample == 1 else 20), (given, sample)


def test_traces_without_a_row_are_left_out_by_their_time_alone() -> None:
    given = [*traces(3), Trace("p", NOW.timestamp() - 60, [], ["no answer"]), Trace("q", 0, [], ["no answer"])]
    assert choose(given, since="24h", where={"row_id": "t1"}, sample=1) == ["t1", "p"]
