"""Score golden cases with the registered metrics: `python -m tests.golden.run FILE`.

FILE is JSON: a list of cases, or an object with `cases`. A case has `id`, `metric`, `params`, `sample`, `judge` (what
the judge answered) and `recommended`: a number, a category, or "nan" for a cell that is not scored, which a refused
parameter value also gives ("error" is the same). Numbers agree within the case's or the file's `tolerance`, else 1e-6.
Cases of factual_correctness may hold scores rounded to two decimals while the metric does not round: those agree within
half of the second decimal. Prints each miss and a closing count; exits with 1 on a miss, malformed cases included.
"""

import json
import math
import re
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from metric_core.declarations.metric import MetricRequest
from metric_core.errors import AssayError, MetricParameterError
from metric_core.metrics.registry import resolve
from metric_core.records import Score, Status
from tests.golden.case_evidence import evidence_of, sample_of

TOLERANCE = 1e-6
PEER_ONLY_PARAMETERS = frozenset({"atomicity", "coverage", "seed_style_llm_kwarg"})
"""Parameters of other implementations that change nothing in the arithmetic."""

NOT_SCORED = ("nan", "error")
_NUMBER = re.compile(r"\d+(?:\.\d*)?(?:e-?\d+)?", re.IGNORECASE)


def main(arguments: list[str]) -> int:
    """Run the cases of the file named on the command line, and return the exit code."""
    if len(arguments) != 1:
        print("usage: python -m tests.golden.run FILE", file=sys.stderr)
        return 2
    try:
        cases, tolerance = read_cases(Path(arguments[0]))
    except (OSError, ValueError) as error:
        print(f"{arguments[0]}: {error}")
        print("0 passed, 1 failed")
        return 1
    misses = [message for case in cases if (message := miss(case, tolerance)) is not None]
    for message in misses:
        print(message)
    print(f"{len(cases) - len(misses)} passed, {len(misses)} failed")
    return 1 if misses else 0


def read_cases(path: Path) -> tuple[list[Any], float]:
    """Return the cases of a file and its tolerance. Raises ValueError if there are none."""
    content = json.loads(path.read_text(encoding="utf-8"))
    cases = content.get("cases") if isinstance(content, dict) else content
    if not isinstance(cases, list) or not cases:
        raise ValueError("wanted a list of cases, or an object with `cases`")
    return cases, _tolerance(content if isinstance(content, dict) else {})


def miss(case: Any, tolerance: float = TOLERANCE) -> str | None:
    """Return a description of what is wrong with a case or its score; None if the score is as expected."""
    name = case.get("id") if isinstance(case, dict) else None
    try:
        expected, score = case["recommended"], score_case(case)
        if agrees(expected, score, _case_tolerance(case, tolerance)):
            return None
    except (AssayError, ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
        return f"{name}: malformed case: {type(error).__name__}: {error}"
    return f"{name}: expected {expected}, got {_shown(score)}"


def score_case(case: Mapping[str, Any]) -> Score:
    """Return the score of a case by the registered metric that it names."""
    try:
        request = _request(case)
    except MetricParameterError as error:
        return Score.failed(str(error))
    sample = sample_of(case["sample"])
    return request.score(evidence_of(request, sample, case["judge"]))


def agrees(expected: Any, score: Score, tolerance: float) -> bool:
    """Return whether a score is what a case expects."""
    if isinstance(expected, str):
        if expected in NOT_SCORED:
            return score.status is not Status.SCORED
        return score.value is None and score.label == expected
    if isinstance(expected, bool) or not isinstance(expected, int | float):
        raise TypeError(f"`recommended` must be a number, a category, or nan, got {expected!r}")
    if math.isnan(expected):
        return score.status is not Status.SCORED
    return score.value is not None and abs(score.value - expected) <= tolerance


def _request(case: Mapping[str, Any]) -> MetricRequest:
    metric = resolve(case["metric"])
    parameters = {k: v for k, v in (case.get("params") or {}).items() if k not in PEER_ONLY_PARAMETERS}
    if "distance_measure" in parameters:
        parameters["distance"] = str(parameters.pop("distance_measure")).lower()
    if "match" in metric.parameters:
        parameters.setdefault("match", "exact")
    unknown = [name for name in parameters if name not in metric.parameters]
    if unknown:
        raise ValueError(f"{metric.name} has no parameter {', '.join(unknown)}")
    return metric.request(parameters)


def _tolerance(content: Mapping[str, Any]) -> float:
    """Return the tolerance of a file: a number, or the number that its description begins with."""
    given = content.get("tolerance") or (content.get("how_to_read") or {}).get("tolerance")
    if isinstance(given, str):
        number = _NUMBER.match(given.strip())
        given = float(number[0]) if number else None
    return TOLERANCE if given is None else float(given)


def _case_tolerance(case: Mapping[str, Any], tolerance: float) -> float:
    own = float(case.get("tolerance", tolerance))
    expected = case["recommended"]
    rounded = isinstance(expected, int | float) and round(expected, 2) == expected
    return own + 0.005 if rounded and resolve(case["metric"]).name == "factual_correctness" else own


def _shown(score: Score) -> str:
    if score.status is not Status.SCORED:
        return f"{score.status} ({score.reason})"
    return str(score.label if score.value is None else score.value)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
