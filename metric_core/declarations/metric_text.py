r"""Parse metrics as written on the command line: names, with parameters in parentheses.

    metrics     metric, metric, ...
    metric      name  or  name(parameter=value, ...)
    value       "text" with the escapes of JSON, 'text' with \' and \\, a JSON list, object, number, true, false or
                null, or bare text

Bare text ends at the parenthesis that closes the metric or at a comma that is followed by `name=`; parentheses in it
are balanced. Any other text must be quoted.
"""

import json
import re
import unicodedata
from dataclasses import dataclass, field
from typing import Any

from metric_core.errors import MetricParameterError
from metric_core.parsing.strict_json import DuplicateKeyError, require_unique_keys

_NAME = re.compile(r"[^\s(),=\"']+")
_PARAMETER = re.compile(r"(\w+)\s*=")
_NEXT_PARAMETER = re.compile(r",\s*\w+\s*=(?!=)")
_END_OF_VALUE = re.compile(r"\s*(?:\)|,\s*(?:\)|\w+\s*=(?!=)))")
_ESCAPES = {"'": "'", '"': '"', "\\": "\\", "n": "\n", "t": "\t"}
_JSON = json.JSONDecoder(strict=False, object_pairs_hook=require_unique_keys)
_LEFT, _RIGHT = 60, 40
"""Most columns of a long line that are shown before and after an error."""


class MetricTextError(MetricParameterError):
    """Metrics that cannot be parsed; the message shows the place.

    Args:
        problem: Description of what was wanted.
        position: Index of the character at fault.
    """

    def __init__(self, problem: str, text: str, position: int) -> None:
        super().__init__(f"metrics cannot be read: {problem}\n{_point_at(text, position)}")
        self.position = position


@dataclass(slots=True)
class MetricText:
    """A metric as it was written.

    Args:
        span: Indices of its first character and of the one behind its last.
        places: Parameter -> index of its name in the text.
        after_bare_text: Parameter -> the parameter before it, whose value is bare text.
    """

    name: str
    text: str
    span: tuple[int, int]
    parameters: dict[str, Any] = field(default_factory=dict)
    places: dict[str, int] = field(default_factory=dict)
    after_bare_text: dict[str, str] = field(default_factory=dict)

    def __str__(self) -> str:
        return self.text[slice(*self.span)]

    def refuse_unknown_parameters(self, metric: str, known: list[str]) -> None:
        """Refuse a parameter that the metric does not have and that may be part of a text before it.

        Raises:
            MetricTextError: There is one; the message says how to quote the text.
        """
        for name, before in self.after_bare_text.items():
            if name not in known:
                raise MetricTextError(
                    f"{metric} has no parameter {name!r}; it has: {', '.join(known)}. If this is part of the text of "
                    f'{before!r}, quote that text: {before}="..."',
                    self.text,
                    self.places[name],
                )


def parse_metrics(text: str) -> list[MetricText]:
    r"""Return the metrics in a text, in order.

    >>> [metric.name for metric in parse_metrics("faithfulness, noise_sensitivity(mode=irrelevant)")]
    ['faithfulness', 'noise_sensitivity']
    >>> parse_metrics("aspect_critic(definition=Does it harm, deceive (or exploit) users?)")[0].parameters
    {'definition': 'Does it harm, deceive (or exploit) users?'}
    >>> parse_metrics('aspect_critic(definition="Is it rude :)", name=\'It\\\'s rude\')')[0].parameters
    {'definition': 'Is it rude :)', 'name': "It's rude"}
    >>> parse_metrics("aspect_critic(definition=smile :) twice)")
    Traceback (most recent call last):
        ...
    metric_core.declarations.metric_text.MetricTextError: metrics cannot be read: missing comma; quote texts with
      single parentheses
      aspect_critic(definition=smile :) twice)
                                        ^

    Raises:
        MetricTextError: The text does not follow the grammar; the message shows the place.
    """
    return _Parser(text).metrics()


class _Parser:
    def __init__(self, text: str) -> None:
        self._text = text
        self._at = 0

    def metrics(self) -> list[MetricText]:
        found = []
        while self._next():
            if self._next() == ",":
                self._at += 1
                continue
            found.append(self._metric())
            if self._next() not in ("", ","):
                after_parameters = self._text[found[-1].span[1] - 1] == ")"
                raise self._error(
                    "missing comma; quote texts with single parentheses"
                    if after_parameters
                    else "wanted a comma between two metrics, as in first,second(parameter=value)"
                )
        return found

    def _metric(self) -> MetricText:
        start, name = self._at, _NAME.match(self._text, self._at)
        if name is None:
            raise self._error("a metric is written name or name(parameter=value, ...)")
        metric = MetricText(name[0], self._text, (start, name.end()))
        self._at = name.end()
        if self._next() == "(":
            self._parameters(metric)
            metric.span = (start, self._at)
        return metric

    def _parameters(self, metric: MetricText) -> None:
        opening = self._at
        self._at += 1
        before_bare: str | None = None
        while self._next() != ")":
            if not self._next():
                raise self._error("this parenthesis is never closed", opening)
            name = _PARAMETER.match(self._text, self._at)
            if name is None:
                raise self._error("parameters are written name=value, separated by commas")
            if name[1] in metric.parameters:
                raise self._error(f"parameters are written name=value, each once; {name[1]!r} is given twice")
            metric.places[name[1]] = self._at
            if before_bare is not None:
                metric.after_bare_text[name[1]] = before_bare
            self._at = name.end()
            metric.parameters[name[1]], is_bare = self._value(opening)
            before_bare = name[1] if is_bare else None
            if self._next() == ",":
                self._at += 1
            elif self._next() not in ("", ")"):
                raise self._error("wanted a comma or a closing parenthesis after the value; put a whole text in quotes")
        self._at += 1

    def _value(self, opening: int) -> tuple[Any, bool]:
        """Return the value at this position, and whether it is bare text."""
        first = self._next()
        if first == "'":
            return self._single_quoted(), False
        if first and first in '"[{':
            return self._json(first), False
        try:
            value, end = _JSON.raw_decode(self._text, self._at)
        except ValueError:
            return self._bare(opening), True
        if _END_OF_VALUE.match(self._text, end):
            self._at = end
            return value, False
        return self._bare(opening), True

    def _json(self, first: str) -> Any:
        try:
            value, self._at = _JSON.raw_decode(self._text, self._at)
        except DuplicateKeyError as error:
            raise self._error(str(error)) from error
        except json.JSONDecodeError as error:
            if first == '"':
                raise self._error(
                    'this quoted text is not valid: it ends with " and has \\" and \\\\ inside', error.pos
                ) from error
            problem = f"not valid JSON: {error.msg}; quote a text that begins with {first}"
            raise self._error(problem, error.pos) from error
        except RecursionError as error:
            raise self._error("the value is nested too deeply") from error
        return value

    def _single_quoted(self) -> str:
        start, self._at = self._at, self._at + 1
        characters: list[str] = []
        while self._at < len(self._text):
            character = self._text[self._at]
            if character == "'":
                self._at += 1
                return "".join(characters)
            if character == "\\":
                self._at += 1
                escaped = self._text[self._at : self._at + 1]
                if escaped not in _ESCAPES:
                    raise self._error("an unknown escape: there are \\' \\\" \\\\ \\n and \\t", self._at - 1)
                character = _ESCAPES[escaped]
            characters.append(character)
            self._at += 1
        raise self._error("this quoted text never ends; put a text with an apostrophe in double quotes", start)

    def _bare(self, opening: int) -> str:
        start, open_parentheses = self._at, [opening]
        while self._at < len(self._text):
            character = self._text[self._at]
            if character == "(":
                open_parentheses.append(self._at)
            elif character == ")":
                open_parentheses.pop()
            is_next = len(open_parentheses) == 1 and _NEXT_PARAMETER.match(self._text, self._at)
            if not open_parentheses or is_next:
                return self._text[start : self._at].strip()
            self._at += 1
        raise self._error(
            "this parenthesis is never closed; quote a text with single parentheses", open_parentheses[-1]
        )

    def _next(self) -> str:
        """Skip white space and return the character behind it; empty at the end."""
        while self._at < len(self._text) and self._text[self._at].isspace():
            self._at += 1
        return self._text[self._at : self._at + 1]

    def _error(self, problem: str, position: int | None = None) -> MetricTextError:
        return MetricTextError(problem, self._text, self._at if position is None else position)


def _point_at(text: str, position: int) -> str:
    """Return the line of a text that holds a position, with a caret below it."""
    start = text.rfind("\n", 0, position) + 1
    end = text.find("\n", position)
    line, column = text[start : end if end >= 0 else len(text)].replace("\t", " "), position - start
    if column > _LEFT:
        line, column = "..." + line[column - _LEFT :], _LEFT + 3
    if len(line) > column + _RIGHT:
        line = line[: column + _RIGHT] + "..."
    width = sum(2 if unicodedata.east_asian_width(character) in "WF" else 1 for character in line[:column])
    return f"  {line}\n  {' ' * width}^"
