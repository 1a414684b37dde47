"""The runner agrees with every case, and fails where a case is wrong."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.golden.run import main

CASES = Path(__file__).with_name("cases.json")
SHARED_CASES = Path(__file__).parents[3] / "shared" / "golden" / "cases.json"

THREE_OF_FOUR: dict[str, Any] = {
    "id": "three-of-four",
    "metric": "faithfulness",
    "params": {},
    "sample": {"response": "response text", "retrieved_contexts": ["passage"]},
    "judge": {"response_claims": ["a", "b", "c", "d"], "verdicts": {"response_claims@contexts": [1, 1, 0, 1]}},
    "recommended": 0.75,
}


def run(folder: Path, *cases: Any) -> int:
    path = folder / "cases.json"
    path.write_text(json.dumps(cases), encoding="utf-8")
    return main([str(path)])


def lines(captured: pytest.CaptureFixture[str]) -> list[str]:
    return captured.readouterr().out.splitlines()


def test_every_case_is_met(capsys: pytest.CaptureFixture[str]) -> None:
    code = main([str(CASES)])
    assert lines(capsys) == ["284 passed, 0 failed"]
    assert code == 0


def test_every_shared_case_is_met(capsys: pytest.CaptureFixture[str]) -> None:
    if not SHARED_CASES.exists():
        pytest.skip("the shared cases are not beside this checkout")
    count = len(json.loads(SHARED_CASES.read_text(encoding="utf-8"))["cases"])
    code = main([str(SHARED_CASES)])
    assert lines(capsys) == [f"{count} passed, 0 failed"]
    assert code == 0


def test_a_bare_list_of_cases_is_read(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(tmp_path, THREE_OF_FOUR) == 0
    assert lines(capsys) == ["1 passed, 0 failed"]


def test_a_wrong_case_is_a_miss(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(tmp_path, THREE_OF_FOUR, THREE_OF_FOUR | {"recommended": 0.5}) == 1
    assert lines(capsys) == ["three-of-four: expected 0.5, got 0.75", "1 passed, 1 failed"]


@pytest.mark.parametrize("expected", ["nan", "pass", 0.7501, 1, 0])
def test_no_other_expectation_is_met(expected: Any, tmp_path: Path) -> None:
    assert run(tmp_path, THREE_OF_FOUR | {"recommended": expected}) == 1


def test_a_cell_that_is_not_scored_says_why(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    ragged = THREE_OF_FOUR | {"judge": THREE_OF_FOUR["judge"] | {"verdicts": {"response_claims@contexts": [1, 1]}}}
    assert run(tmp_path, ragged) == 1
    assert lines(capsys)[0] == ("three-of-four: expected 0.75, got failed (no usable verdict from the judge)")
    assert run(tmp_path, ragged | {"recommended": "nan"}) == 0


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"metric": "faithfullness"}, "UnknownMetricError: unknown metric 'faithfullness'. Did you mean faithfulness?"),
        ({"params": {"beta": 2}}, "ValueError: faithfulness has no parameter beta"),
        ({"judge": {}}, "ValueError: faithfulness needs the judge's response_claims or classification"),
        ({"sample": []}, "AttributeError"),
        ({"recommended": None}, "TypeError"),
    ],
)
def test_a_malformed_case_is_a_miss(
    change: dict[str, Any], message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(tmp_path, THREE_OF_FOUR | change) == 1
    printed = lines(capsys)
    assert printed[0].startswith(f"three-of-four: malformed case: {message}")
    assert printed[1] == "0 passed, 1 failed"


@pytest.mark.parametrize("key", ["metric", "sample", "judge", "recommended"])
def test_a_case_without_a_part_is_a_miss(key: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    case = {name: value for name, value in THREE_OF_FOUR.items() if name != key}
    assert run(tmp_path, case, "no case at all") == 1
    assert lines(capsys)[0] == f"three-of-four: malformed case: KeyError: {key!r}"


@pytest.mark.parametrize("content", ["{}", "[]", '{"cases": 3}', "not JSON"])
def test_a_file_without_cases_fails(content: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "cases.json"
    path.write_text(content, encoding="utf-8")
    assert main([str(path)]) == 1
    assert lines(capsys)[-1] == "0 passed, 1 failed"


def test_a_refused_parameter_value_is_not_scored(tmp_path: Path) -> None:
    case = THREE_OF_FOUR | {"metric": "factual_correctness", "params": {"mode": "best"}, "recommended": "nan"}
    assert run(tmp_path, case) == 0


def test_the_tolerance_of_the_file_counts(tmp_path: Path) -> None:
    path = tmp_path / "cases.json"
    close = THREE_OF_FOUR | {"recommended": 0.76}
    for tolerance, code in ((0.1, 0), ("1e-1 absolute", 0), (1e-3, 1)):
        path.write_text(json.dumps({"tolerance": tolerance, "cases": [close]}), encoding="utf-8")
        assert main([str(path)]) == code


def test_a_blank_response_has_no_claims_and_a_blank_premise_supports_none(tmp_path: Path) -> None:
    blank = THREE_OF_FOUR | {"sample": {"response": " ", "retrieved_contexts": ["passage"]}, "recommended": "nan"}
    nothing_found = THREE_OF_FOUR | {"sample": {"response": "text", "retrieved_contexts": []}, "recommended": 0.0}
    assert run(tmp_path, blank, nothing_found) == 0


def test_a_text_is_no_whole_number_in_a_json_reply(tmp_path: Path) -> None:
    params = {"definition": "How clear?", "allowed_values": [7, 8]}
    case = {"id": "text", "metric": "discrete_metric", "params": params, "sample": {}, "judge": {"value": "8"}}
    number = case | {"judge": {"value": 8.0}, "recommended": 8}
    assert run(tmp_path, case | {"recommended": "nan"}, number) == 0
