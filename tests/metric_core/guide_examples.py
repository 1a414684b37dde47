"""Read the worked example of a guide: its lines state the parameters, the evidence and the score in words."""

import json
import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from metric_core.columns import COLUMNS, ColumnType
from metric_core.declarations.metric import MetricRequest
from metric_core.evidence import ALL_CONTEXTS, BY_REFERENCE, BY_RESPONSE, BY_USER_INPUT, Evidence, context_premise
from metric_core.joint_contexts import contexts_premise
from metric_core.metrics.guides import read_guide
from metric_core.metrics.registry import METRICS
from metric_core.prompts.judge_questions import ChoiceQuestion
from metric_core.records import (
    Importance,
    KeyPoint,
    Place,
    Question,
    Rating,
    Sample,
    Score,
    Side,
    VerdictKind,
    VerdictRequest,
)
from metric_core.stages import Product

_SIDES = {
    f"{side.value.replace('_', ' ')}{'' if 'sentence' in side or 'point' in side else ' claim'}": side for side in Side
}
_PREMISES = {
    "supported by the contexts": ALL_CONTEXTS,
    "supported by the reference": BY_REFERENCE,
    "supported by the response": BY_RESPONSE,
    "stated by the response": BY_RESPONSE,
    "helps to answer the question": BY_USER_INPUT,
}
_OWNERS = {"entities of the reference": Side.REFERENCE, "entities of the contexts": Side.CONTEXT}
_TRUTH = {"yes": 1.0, "no": 0.0, "partly": 0.0}
_CLAIM = re.compile(rf'(?P<side>{"|".join(_SIDES)}) "(?P<text>.*)": (?P<facts>.*)')
_QUESTION = re.compile(r'regenerated question "(?P<text>.*)": cosine with the user question (?P<cosine>\S+)')
_USEFUL = re.compile(r"context (?P<number>\d+) is useful: (?P<truth>yes|no)")
_SCORE = re.compile(r"score: (?P<score>\S+)\. (?P<comment>\S.*\.)")
_ITEM = re.compile(r"(?:^|; )\(\d+\) ")


@dataclass(frozen=True)
class Example:
    """A worked example.

    Args:
        request: The metric with the parameters of the example.
        evidence: Everything that the example states.
        score: Score as written, with up to three decimals.
    """

    request: MetricRequest
    evidence: Evidence
    score: str


def read_example(metric: str) -> Example:
    """Return the example of a guide. Raise ValueError if a line of it is not understood."""
    *lines, last = read_guide(metric).example.splitlines()
    score = _SCORE.fullmatch(last)
    if score is None:
        raise ValueError(f"wanted the score and how it is calculated, got {last!r}")
    written = dict(line.split(" = ", 1) for line in lines if re.match(r"\w+ = ", line))
    request = METRICS[metric].request({name: _parameter(name, text) for name, text in written.items()})
    facts = [line for line in lines if line.partition(" = ")[0] not in written]
    stated = {name: text for name, _, text in (line.partition(": ") for line in facts)}
    own = {name: json.loads(text) for name, text in stated.items() if name in request.own_columns}
    sample = Sample(
        **{name: _cell(COLUMNS[name], text) for name, text in stated.items() if name in COLUMNS}, extras=own or None
    )
    rest = [line for line in facts if line.partition(": ")[0] not in {*COLUMNS, *own}]
    return Example(request, _evidence(request, sample, rest), score["score"])


def _parameter(name: str, text: str) -> Any:
    if name == "rubrics":
        return _mapping(text)
    try:
        return json.loads(f"[{text}]" if ", " in text else text)
    except json.JSONDecodeError:
        return text


def _cell(kind: ColumnType, text: str) -> Any:
    if kind in (ColumnType.TEXTS, ColumnType.IDS):
        return tuple(_ITEM.split(text)[1:])
    if kind is ColumnType.KEY_POINTS:
        return tuple(_key_point(item) for item in _ITEM.split(text)[1:])
    if kind is ColumnType.JUDGMENTS:
        return {name: float(grade) for name, grade in _mapping(text).items()}
    return _mapping(text) if kind is ColumnType.RUBRICS else text


def _key_point(text: str) -> KeyPoint:
    fact, _, importance = text.removesuffix(")").partition(" (")
    return KeyPoint(fact, Importance(importance or "vital"))


def _mapping(text: str) -> dict[str, str]:
    return dict(part.split(": ", 1) for part in text.split("; "))


def _evidence(request: MetricRequest, sample: Sample, lines: Iterable[str]) -> Evidence:
    of_reference = Product.USEFULNESS_FOR_REFERENCE in request.products
    usefulness = VerdictKind.USEFULNESS_FOR_REFERENCE if of_reference else VerdictKind.USEFULNESS_FOR_RESPONSE
    points = {f"{Side.KEY_POINT}:{i}": point.text for i, point in enumerate(sample.key_points or ())}
    claims: dict[Side, dict[str, str]] = {Side.KEY_POINT: points} if points else {}
    verdicts: dict[tuple[VerdictKind, str, str], float | None] = {}
    places: dict[str, Place] = {}
    questions: dict[Question, float] = {}
    more: dict[str, Any] = {"entities": {}}
    for line in lines:
        name, _, text = line.partition(": ")
        if found := _CLAIM.fullmatch(line):
            texts = claims.setdefault(_SIDES[found["side"]], {})
            number, claim = len(texts), f"{_SIDES[found['side']]}:{len(texts)}"
            if found["text"] in texts.values():  # a key point that the row has
                claim = next(known for known, text in texts.items() if text == found["text"])
            texts[claim] = found["text"]
            cited, facts = _facts(found["facts"], "\n".join(points.values()))
            verdicts |= {(kind, claim, premise): truth for (kind, premise), truth in facts.items()}
            places |= {} if cited is None else {claim: Place(0, 0, number, cited)}
        elif found := _USEFUL.fullmatch(line):
            verdicts[usefulness, "", context_premise(int(found["number"]) - 1)] = _TRUTH[found["truth"]]
        elif found := _QUESTION.fullmatch(line):
            questions[Question(found["text"])] = float(found["cosine"])
        elif name == Product.ANSWER_SIMILARITY:
            more["answer_similarities"] = {Product.ANSWER_SIMILARITY: float(text)}
        elif name in _OWNERS:
            more["entities"][_OWNERS[name]] = tuple(text.split(", "))
        elif name == "answers of the judge":
            more["ratings"] = {request.key: _ratings(request, sample, _ITEM.split(text)[1:])}
        else:
            raise ValueError(f"the line is not understood: {line!r}")
    if questions:
        more |= {"questions": tuple(questions), "question_similarities": tuple(questions.values())}
    given = {f"{Side.KEY_POINT}:{i}": point.importance for i, point in enumerate(sample.key_points or ())}
    return Evidence(sample, claims, verdicts, places=places, importances=given, **more)


def _facts(text: str, key_points: str) -> tuple[tuple[str, ...] | None, dict[tuple[VerdictKind, str], float]]:
    """Return the labels that a claim cites, None if that is not stated, and its verdicts by kind and premise."""
    cited, verdicts = None, {}
    for fact in text.split(", "):
        if fact.startswith("cites "):
            cited = tuple(re.findall(r"\d+", fact))
        else:
            words, _, truth = fact.partition(": ")
            by_points = VerdictRequest(claim="", premise_text=key_points).key[1]
            premise = by_points if words == "supported by the key points" else _premise(words)
            kind = VerdictKind.RELEVANCE if premise == BY_USER_INPUT else VerdictKind.SUPPORT
            verdicts[kind, premise] = _TRUTH[truth]
            if words.startswith("stated"):
                verdicts[VerdictKind.PARTIAL_SUPPORT, premise] = float(truth != "no")
    return cited, verdicts


def _premise(words: str) -> str:
    numbers = [int(number) - 1 for number in re.findall(r"\d+", words)]
    if not numbers:
        return _PREMISES[words]
    return context_premise(numbers[0]) if len(numbers) == 1 else contexts_premise(numbers)


def _ratings(request: MetricRequest, sample: Sample, answers: list[str]) -> list[Rating]:
    """Return one answer to each question, or all answers as votes on the only question."""
    asked = request.rating_requests(sample)
    assert not isinstance(asked, Score), "no judge is asked"
    asked = [*asked] * len(answers) if len(asked) == 1 else asked
    return [
        Rating(each.template, answer if isinstance(each.question, ChoiceQuestion) else float(answer))
        for each, answer in zip(asked, answers, strict=True)
    ]
