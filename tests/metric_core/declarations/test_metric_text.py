"""Metrics as written on the command line: values are read whole, or the error shows the place."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from metric_core.declarations.metric_text import MetricTextError, parse_metrics
from metric_core.errors import MetricParameterError
from metric_core.metrics.registry import parse_request


def parameters(text: str) -> dict[str, Any]:
    """Return the parameters of the only metric in a text."""
    (metric,) = parse_metrics(text)
    return metric.parameters


def test_several_metrics_are_split_at_the_commas_between_them() -> None:
    text = 'faithfulness, aspect_critic(definition=Does it harm, deceive (or exploit) users?),a:B(x=")", y=[1, 2]) ,'
    assert list(map(str, parse_metrics(text))) == [
        "faithfulness",
        "aspect_critic(definition=Does it harm, deceive (or exploit) users?)",
        'a:B(x=")", y=[1, 2])',
    ]
    assert parse_metrics(" , ") == []


def test_a_value_is_read_whole() -> None:
    cases: list[tuple[str, object]] = [
        ('"a, b=c) \\"d\\" \\n"', 'a, b=c) "d" \n'),
        (r"'a, b=c) it\'s \\ \n'", "a, b=c) it's \\ \n"),
        ("Is it (very (very)) rude, or not?", "Is it (very (very)) rude, or not?"),
        ("users' data", "users' data"),
        ('Is "this" it?', 'Is "this" it?'),
        ("x == y, z == 1", "x == y, z == 1"),
        ("3 of 4", "3 of 4"),
        ("two\nlines", "two\nlines"),
        ('"two\nlines"', "two\nlines"),
        ("0.5", 0.5),
        ("null", None),
        ('{"a": ")"}', {"a": ")"}),
        ("", ""),
    ]
    for behind in ["", ", z=1"]:
        for written, value in cases:
            assert parameters(f"m(a={written}{behind})")["a"] == value, (written, value, behind)


@given(st.text(), st.text())
def test_every_text_can_be_quoted(first: str, second: str) -> None:
    single = "'" + second.replace("\\", "\\\\").replace("'", "\\'") + "'"
    assert parameters(f"m(a={json.dumps(first)},b={single})") == {"a": first, "b": second}


@given(st.text(alphabet="ab (),='\"\\[]{}1:\n"))
def test_any_text_is_parsed_or_refused_with_its_place(text: str) -> None:
    error: MetricTextError | None = None
    try:
        parse_metrics(text)
    except MetricTextError as refused:
        error = refused
    assert error is None or (str(error).endswith("^") and 0 <= error.position <= len(text))


def test_what_cannot_be_read_is_refused_with_a_caret() -> None:
    cases: list[tuple[str, str, str]] = [
        ("m(a=smile :) twice)", "quote texts with single parentheses", "twice"),
        ("m(a=frown :( twice), b", "this parenthesis is never closed", "(a=frown"),
        ("m(a=b", "this parenthesis is never closed", "(a"),
        ("two words", "wanted a comma between two metrics", "words"),
        ("m(recall)", "parameters are written name=value", "recall"),
        ("m(a=1, a=2)", "each once; 'a' is given twice", "a=2"),
        ('m(a="b" c)', "wanted a comma or a closing parenthesis", "c)"),
        ("m(a='b)", "this quoted text never ends", "'b"),
        ('m(a={"b": 1, "b": 2})', "the key 'b' is given twice", "{"),
        ("m(a=[one])", "not valid JSON", "one"),
        ("a)", "wanted a comma between", ")"),
        ("(a)", "a metric is written name or name", "("),
    ]
    for text, problem, at in cases:
        with pytest.raises(MetricTextError, match=problem) as caught:
            parse_metrics(text)
        *_, line, caret = str(caught.value).splitlines()
        assert text[caught.value.position :].startswith(at), (text, problem, at)
        assert line.strip() == text, (text, problem, at)
        assert line[len(caret) - 1 :].startswith(at), (text, problem, at)


def test_a_long_line_is_shown_around_the_place() -> None:
    with pytest.raises(MetricTextError) as caught:
        parse_metrics(f"m(a={'x' * 200}) y z{'x' * 200}\nlast line")
    *_, line, caret = str(caught.value).splitlines()
    assert line[len(caret) - 1 :].startswith("y z")
    assert len(line) < 120


def test_a_part_of_a_text_that_looks_like_a_parameter_is_refused_with_the_quotes_to_set() -> None:
    with pytest.raises(MetricTextError, match="quote that text: definition="):
        parse_request("aspect_critic(definition=Does it harm, severity=high?)")
    with pytest.raises(MetricParameterError, match="has no parameter 'severity'; it has: name, definition"):
        parse_request('aspect_critic(definition="harm", severity=high)')
    text = 'aspect_critic(definition="Does it harm, severity=high?")'
    assert parse_request(text).parameters["definition"] == "Does it harm, severity=high?"


def test_a_request_is_one_metric() -> None:
    with pytest.raises(MetricParameterError, match="one metric is written name"):
        parse_request("faithfulness, context_recall")
