"""Differences between two runs, and those that make the runs incomparable."""

from pathlib import Path
from typing import Any

import pytest

from tasks.comparison.run_differences import RunDifferences, find_differences
from tasks.comparison.run_pair import Matching, RunPair
from tasks.runs.finished_run import FinishedRun
from tests.tasks import compared

JUDGE = {"backend": "server", "model": "big", "revision": "r1"}


def differing(tmp_path: Path, a: dict[str, Any], b: dict[str, Any]) -> RunDifferences:
    runs = [FinishedRun(compared.write_run(tmp_path / name, 0.5, **more)) for name, more in (("a", a), ("b", b))]
    return find_differences(RunPair.from_runs(runs[0], runs[1], Matching()))


def test_equal_runs_differ_in_nothing(tmp_path: Path) -> None:
    found = differing(tmp_path, {}, {})
    assert found.settings == ()
    assert found.serious == ()
    assert (found.rows.both, found.rows.changed, found.rows.columns) == (compared.ROWS, 0, {})


def calibration_entry(created: str, applied: bool = True) -> dict[str, Any]:
    return {"metrics": {"m": {"created": created, "applied": applied}}, "not_covered": []}


def prompts(verdict: str, claims: str, **server: Any) -> dict[str, Any]:
    digests = {"verdict": verdict, "claims": claims}
    return {"prompts": digests, "judge_fingerprints": digests, "config": {"judge": {"server": server}}}


@pytest.mark.parametrize(
    ("a", "b", "reason"),
    [
        ({"judge": JUDGE}, {"judge": {**JUDGE, "model": "small"}}, "judge model: big in A, small in B"),
        ({"judge": JUDGE}, {"judge": {**JUDGE, "revision": "r2"}}, "judge revision: r1 in A, r2 in B"),
        ({"config": {"verdict": "binary"}}, {"config": {"verdict": "probability"}}, "verdict: binary in A, prob"),
        (
            {"config": {"judge": {"server": {"temperature": 0.0}}}},
            {"config": {"judge": {"server": {"temperature": 0.7}}}},
            "judge temperature: 0.0 in A, 0.7 in B",
        ),
        (
            {"judge_fingerprints": {"verdict": "1", "claims": "1"}},
            {"judge_fingerprints": {"verdict": "2", "claims": "1", "questions": "1"}},
            r"how the judge is asked: one way \(verdict\) in A",
        ),
        (
            {"judge_fingerprints": {"verdict": "1"}, "config": {"judge": {"server": {"seed": 0}}}},
            {"judge_fingerprints": {"verdict": "2"}, "config": {"judge": {"server": {"seed": 1}}}},
            "judge seed: 0 in A, 1 in B",
        ),
        (
            {"judge": {**JUDGE, "served": "aaaaaaaaaaaa"}, "judge_fingerprints": {"verdict": "1"}},
            {"judge": {**JUDGE, "served": "bbbbbbbbbbbb"}, "judge_fingerprints": {"verdict": "2"}},
            "model behind the judge's name: aaaaaaaa in A, bbbbbbbb in B",
        ),
        (
            {"prompts": {"verdict": "1", "claims": "1"}, "judge_fingerprints": {"verdict": "1", "claims": "1"}},
            {"prompts": {"verdict": "2", "claims": "1"}, "judge_fingerprints": {"verdict": "2", "claims": "1"}},
            "the prompt of the question 'verdict' changed$",
        ),
        (
            {**prompts("1", "1"), "versions": {"rag-assay": "0.1+g1"}},
            {**prompts("2", "1"), "versions": {"rag-assay": "0.1+g2"}},
            r"the prompt of the question 'verdict' changed between rag-assay 0.1\+g1 and 0.1\+g2$",
        ),
        (
            {**prompts("1", "1"), "versions": {"rag-assay": "0.1+g1"}},
            {**prompts("2", "2"), "versions": {"rag-assay": "0.1+g2"}},
            r"the prompts of the questions 'claims' and 'verdict' changed between rag-assay 0.1\+g1 and 0.1\+g2$",
        ),
        (
            {**prompts("1", "1", prompts="own"), "versions": {"rag-assay": "0.1+g1"}},
            {**prompts("2", "1", prompts="own"), "versions": {"rag-assay": "0.1+g2"}},
            "the prompt of the question 'verdict' changed$",
        ),
        (prompts("1", "1", language="en"), prompts("2", "2", language="de"), "judge language: en in A, de in B"),
        ({"embedder": {"model": "x"}}, {"embedder": {"model": "y"}}, "embedder model: x in A, y in B"),
    ],
)
def test_another_yardstick_is_not_like_for_like(
    tmp_path: Path, a: dict[str, Any], b: dict[str, Any], reason: str
) -> None:
    found = differing(tmp_path, a, b)
    assert len(found.serious) == 1
    with pytest.raises(AssertionError, match=reason):
        raise AssertionError(found.serious[0])


def test_a_changed_prompt_is_named_beside_another_judge_and_another_setting(tmp_path: Path) -> None:
    found = differing(
        tmp_path,
        {**prompts("1", "1", seed=0), "judge": JUDGE, "versions": {"rag-assay": "1"}},
        {**prompts("2", "1", seed=1), "judge": {**JUDGE, "model": "small"}, "versions": {"rag-assay": "2"}},
    )
    assert found.serious == (
        "judge model: big in A, small in B",
        "the prompt of the question 'verdict' changed between rag-assay 1 and 2",
        "judge seed: 0 in A, 1 in B",
    )


@pytest.mark.parametrize(
    ("formulas", "more", "is_comparable"),
    [
        (("x", "x"), {}, True),
        (("x", "y"), {}, False),
        ((None, None), {}, False),
        (("x", "x"), prompts("2", "1"), False),
    ],
)
def test_another_version_alone_leaves_scores_comparable(
    tmp_path: Path, formulas: tuple[str | None, str | None], more: dict[str, Any], is_comparable: bool
) -> None:
    known = {"judge": JUDGE, **prompts("1", "1")}
    found = differing(
        tmp_path,
        {**known, "versions": {"rag-assay": "0.1+g1"}, "formulas": formulas[0]},
        {**known, "versions": {"rag-assay": "0.1+g2"}, "formulas": formulas[1], **more},
    )
    note = found.version_note
    assert (note is not None) is is_comparable
    assert note is None or "rag-assay is 0.1+g1 in A and 0.1+g2 in B" in note
    assert [item.name for item in found.settings if "formulas" in item.name] == ["code of the formulas"] * (
        formulas[0] != formulas[1]
    )


@pytest.mark.parametrize(
    ("a", "b", "name"),
    [
        ({"source": "v1.jsonl", "config": {"source": "v1.jsonl"}}, {"config": {"source": "v2.jsonl"}}, "source"),
        ({"versions": {"prefect": "1"}}, {"versions": {"prefect": "2"}}, "version of prefect"),
        (
            {"judge_fingerprints": {"verdict": "1"}, "config": {"judge": {"server": {"seed": 0}}}},
            {"judge_fingerprints": {"verdict": "1"}, "config": {"judge": {"server": {"seed": 1}}}},
            "judge seed",
        ),
        ({"judge": {**JUDGE, "note": "x"}}, {"judge": {**JUDGE, "note": "y"}}, None),
        ({"config": {"out": "x", "workers": 1}}, {"config": {"out": "y", "workers": 2}}, None),
        (
            {"calibration": calibration_entry("1 May", applied=False)},
            {"calibration": calibration_entry("2 May", applied=False)},
            None,
        ),
        (
            {"config": {"judge": {"server": {"urls": ["http://a/v1"], "concurrency": 1}}}},
            {"config": {"judge": {"server": {"urls": ["http://b/v1"], "concurrency": 9}}}},
            None,
        ),
    ],
)
def test_harmless_differences_are_listed_or_omitted(
    tmp_path: Path, a: dict[str, Any], b: dict[str, Any], name: str | None
) -> None:
    found = differing(tmp_path, a, b)
    assert found.serious == ()
    assert [item.name for item in found.settings] == ([name] if name else [])


def test_probabilities_mapped_by_another_calibration_are_serious(tmp_path: Path) -> None:
    found = differing(
        tmp_path, {"calibration": calibration_entry("1 May")}, {"calibration": calibration_entry("2 May")}
    )
    assert found.serious == ("calibration applied to m: made 1 May in A, made 2 May in B",)


def test_another_parameter_of_a_metric_is_serious_and_a_missing_metric_is_not(tmp_path: Path) -> None:
    def entry(**more: Any) -> dict[str, Any]:
        return {"key": "m", "name": "m", "direction": "higher", "bounds": None, "parameters": more}

    other = {**entry(), "key": "n"}
    found = differing(tmp_path, {"metrics": [entry(mode="a")]}, {"metrics": [entry(mode="b"), other]})
    assert found.serious == ("m: mode: a in A, b in B",)
    assert [item.name for item in found.settings] == ["m: mode", "metric n"]


def test_changed_responses_are_no_serious_difference(tmp_path: Path) -> None:
    a = compared.write_run(tmp_path / "a", 0.5)
    b = compared.write_run(tmp_path / "b", 0.5, answer="In Cork.")
    found = find_differences(RunPair.from_runs(FinishedRun(a), FinishedRun(b), Matching()))
    assert found.serious == ()
    assert dict(found.rows.columns) == {"response": compared.ROWS}


def test_a_judge_or_embedder_that_only_one_run_used_makes_no_difference(tmp_path: Path) -> None:
    unused = {"judge": {"backend": "none", "model": "none", "revision": ""}, "embedder": None, "judge_fingerprints": {}}
    used = {"judge": JUDGE, "embedder": {"model": "small"}, "judge_fingerprints": {"verdict": "1"}}
    config = {"config": {"judge": {"server": {"temperature": 0.7}}}}
    assert differing(tmp_path / "one", used, {**unused, **config}).serious == ()
    assert differing(tmp_path / "none", unused, {**unused, **config}).serious == ()


def test_verdicts_of_another_server_or_another_release_of_its_program_may_share_a_shift(tmp_path: Path) -> None:
    def judged(url: str, software: str, stored: int = 0) -> dict[str, Any]:
        server = {"urls": [url]}
        usage = {"questions": 9, "stored": stored}
        features = {"software": software}
        return {"judge": JUDGE, "judge_features": features, "usage": usage, "config": {"judge": {"server": server}}}

    first, other = judged("http://gpu1/v1", "vLLM 0.9"), judged("http://gpu2/v1", "vLLM 0.10")
    found = differing(tmp_path / "other", first, other)
    assert found.serious == ()
    assert found.shift_note == (
        "new verdicts of B may share a shift, which intervals and p do not allow for: the judge's server is "
        "http://gpu2/v1 in B, http://gpu1/v1 in A, its program is vLLM 0.10 in B, vLLM 0.9 in A; an anchor shows "
        "whether they do"
    )
    assert differing(tmp_path / "same", first, first).shift_note is None
    assert differing(tmp_path / "cached", first, judged("http://gpu2/v1", "vLLM 0.10", stored=9)).shift_note is None
