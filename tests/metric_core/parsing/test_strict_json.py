"""JSON whose objects name a key twice is refused with the line."""

import json

import pytest

from metric_core.parsing.strict_json import DuplicateKeyError, parse_json


@pytest.mark.parametrize("text", ['{"a": 1}', '[{"a": 1}, {"a": 2}]', '"a"', '{"a": {"a": 1}}', "null"])
def test_other_json_is_read_as_ever(text: str) -> None:
    assert parse_json(text) == parse_json(text.encode("utf-8-sig")) == json.loads(text)


@pytest.mark.parametrize(
    ("text", "key", "line"),
    [
        ('{"a": 1, "a": 1}', "a", 1),
        ('{\n"a": 1,\n"b": {\n"c": 1, "c": 2}}', "c", 3),
        ('[{"a": 1},\n\n{"b": "{", "\\u0062": 2}]', "b", 3),
    ],
)
def test_a_key_given_twice_is_refused_with_the_line_of_its_object(text: str, key: str, line: int) -> None:
    for form in (text, text.encode("utf-8-sig")):
        with pytest.raises(DuplicateKeyError) as caught:
            parse_json(form)
        assert (caught.value.key, caught.value.line) == (key, line)
