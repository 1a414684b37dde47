"""A change asks exactly the questions that depend on it, as counted by the judge server and the embedding server."""

import json
import shutil
import sys
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from importlib.resources import as_file, files
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from deployments.cli._support.doctor_checks import check_judge_servers
from flows.config.run_config import RunConfig
from flows.dry_run.dry_run import make_dry_run
from flows.evaluate import run_evaluation
from flows.planning.planner import draft_plan
from flows.results.gated_comparison import CompareOptions, compare_runs
from metric_core.stages import Stage
from tasks.engine.registry import STAGES
from tasks.models.judges.openai import openai_judge
from tasks.processes.judge_service import judge_status
from tests.structure.house import ROOT
from tests.tasks.models.embedders.embedding_server import EmbeddingServer
from tests.tasks.models.judges.openai.fake_server import FakeServer
from tests.tasks.processes import fake_verifier

pytestmark = [pytest.mark.prefect, pytest.mark.models, pytest.mark.usefixtures("prefect_stub")]

ROWS: Sequence[Mapping[str, Any]] = [
    {
        "id": f"r{number}",
        "user_input": f"Who repairs bike {number}?",
        "response": f"Hall {number} does.",
        "retrieved_contexts": [f"Hall {number} repairs bikes.", "The canteen serves soup."],
        "reference": f"It is hall {number} that does.",
    }
    for number in range(3)
]
METRICS = ("faithfulness", "answer_relevancy", "nv_accuracy", "answer_similarity")
COLD = {"claims": 3, "verdicts": 6, "questions": 3, "ratings": 6}


def kind_of(body: Mapping[str, Any]) -> str:
    """Return the kind of question of a request."""
    if labels := body.get("structured_outputs", {}).get("choice"):
        kinds = {frozenset({"yes", "no"}): "verdicts", frozenset({"1", "0"}): "votes"}
        return kinds.get(frozenset(labels), "ratings")
    return {"claims": "claims", "questions": "questions", "value": "counts"}[next(iter(schema_of(body)))]


def schema_of(body: Mapping[str, Any]) -> Mapping[str, Any]:
    properties: Mapping[str, Any] = body["response_format"]["json_schema"]["schema"]["properties"]
    return properties


def say(body: dict[str, Any]) -> dict[str, Any] | None:
    """Return two claims per response, or questions that name its hall; None for other questions."""
    if (kind := kind_of(body)) not in ("claims", "questions"):
        return None
    text = body["messages"][-1]["content"]
    hall = next(number for number in range(100) if f"Hall {number} does" in text or f"It is hall {number}" in text)
    if kind == "claims":
        of = "reference" if f"It is hall {hall}" in text else "response"
        return {"content": json.dumps({"claims": [f"The {of} names hall {hall}.", f"The {of} names no {hall + 1}."]})}
    count = schema_of(body)["questions"]["minItems"]
    questions = [{"question": f"What does hall {hall} do, {k}?", "noncommittal": False} for k in range(count)]
    return {"content": json.dumps({"questions": questions})}


class Bench:
    """Runs that share stores, and the requests of the last run to both servers."""

    def __init__(self, folder: Path, judge: FakeServer, embedder: EmbeddingServer) -> None:
        self.folder = folder
        self.judge = judge
        self.embedder = embedder
        self.scores = self.run()

    def run(
        self, rows: Sequence[Mapping[str, Any]] = ROWS, options: Mapping[str, Any] | None = None, **more: Any
    ) -> Any:
        """Run the flow, and return the table of scores.

        Args:
            rows: Rows of the source.
            options: Options of the judge server.
            **more: Further keys of the configuration.
        """
        config = self.config(rows, options, **more)
        judged, embedded = len(self.judge.asked), len(self.embedder.bodies)
        run = Path(run_evaluation(config).folder)
        self.asked: dict[str, int] = dict(Counter(kind_of(body) for body in self.judge.asked[judged:]))
        texts = [text for body in self.embedder.bodies[embedded:] for text in body["input"]]
        self.embedded = [text for text in texts if text != "hello"]  # the text that probes the server
        self.manifest: dict[str, Any] = json.loads((run / "run.json").read_text(encoding="utf-8"))
        self.stages: dict[str, dict[str, Any]] = self.manifest["stages"]
        return pq.read_table(run / "scores.parquet")

    def config(
        self, rows: Sequence[Mapping[str, Any]] = ROWS, options: Mapping[str, Any] | None = None, **more: Any
    ) -> RunConfig:
        """Write the rows, and return the configuration of a run."""
        source = self.folder / "rows.jsonl"
        source.write_text("\n".join(json.dumps(row) for row in rows), encoding="utf-8")
        config = {
            "source": str(source),
            "metrics": METRICS,
            "judge": {"backend": "server", "server": {"urls": [self.judge.url]} | dict(options or {})},
            "embedder": self.embedder.url,
            "tables": str(self.folder / "tables"),
            "cache": str(self.folder / "answers.db"),
            "out": str(self.folder / "run"),
        }
        return RunConfig.model_validate(config | more)


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Bench]:
    """Yield a bench after its first run."""
    embedder = EmbeddingServer()
    with FakeServer(say=say) as judge:
        bench = Bench(tmp_path, judge, embedder)
        assert bench.asked == COLD
        assert len(bench.embedded) == len(set(bench.embedded)) > 2 * len(ROWS)
        yield bench
    embedder.stop()


def test_new_data_and_metrics_ask_only_new_questions(bench: Bench) -> None:
    first = bench.scores
    assert bench.run().equals(first)
    assert (bench.asked, bench.embedded) == ({}, [])
    bench.run(tables=str(bench.folder / "other-tables"))
    assert (bench.asked, bench.embedded) == ({}, [])
    half = bench.folder / "half.jsonl"
    half.write_text("\n".join(map(json.dumps, ROWS[:0:-1])), encoding="utf-8")
    bench.run(source=str(half), cache=str(bench.folder / "empty.db"))  # rows are found, whatever their source
    assert (bench.asked, bench.embedded) == ({}, [])
    bench.run(metrics=[*METRICS, "nv_context_relevance", "context_recall"])
    # Claims of the references with their verdicts, and two ratings per row.
    assert bench.asked == {"claims": 3, "verdicts": 6, "ratings": 6}
    assert bench.embedded == []
    bench.run([{**ROWS[0], "response": "Hall 7 does."}, *ROWS[1:]])
    assert bench.asked == {"claims": 1, "verdicts": 2, "questions": 1, "ratings": 2}
    assert {text for text in bench.embedded if "7" not in text} == set()
    assert "Hall 7 does." in bench.embedded


def test_changed_prompt_asks_its_questions_again(bench: Bench) -> None:
    prompts = bench.folder / "prompts"
    with as_file(files("metric_core.prompts") / "en") as packaged:
        shutil.copytree(packaged, prompts)
    custom = {"language": str(prompts)}
    bench.run(options=custom)
    assert bench.asked == {}
    for name, asked in (("verdict", {"verdicts": 6}), ("accuracy_1", {"ratings": 3}), ("system", COLD)):
        path = prompts / f"{name}.txt"
        path.write_text(path.read_text(encoding="utf-8") + "\nBe fair.\n", encoding="utf-8")
        bench.run(options=custom)
        assert bench.asked == asked
        assert bench.embedded == []


def test_changed_judge_or_options_ask_the_dependent_questions(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    others = {kind: count for kind, count in COLD.items() if kind != "questions"}
    for options, asked in (
        ({"revision": "2"}, COLD),
        ({"temperature": 0.5}, others),
        ({"concurrency": 3, "timeout": 77.0}, {}),
    ):
        bench.run(options=options)
        assert bench.asked == asked
    # The same address in the same process must not be taken for the previous model.
    bench.judge.models = ["another-model"]
    bench.run()
    assert bench.asked == COLD
    monkeypatch.setattr(openai_judge, "VERSION", openai_judge.VERSION + 1)
    bench.run()
    assert bench.asked == COLD
    assert bench.embedded == []


def test_another_verifier_asks_no_writing_and_another_writer_no_verdicts(bench: Bench) -> None:
    with FakeServer(models=["verifier"]) as verifier, FakeServer(say=say, models=["other-writer"]) as writer:
        served = {"backend": "server", "server": {"urls": [bench.judge.url]}}
        routed: dict[str, Any] = {"judge": {**served, "verdicts": verifier.url}}
        config = bench.config(**routed)
        planned = make_dry_run(draft_plan(config)).by_judge
        assert {name: tally.requests for name, tally in planned.items()} == {"verifier": 6}
        bench.run(**routed)
        assert (bench.asked, Counter(map(kind_of, verifier.asked))) == ({}, {"verdicts": 6})
        roles = {role["name"]: role for role in bench.manifest["judges"]}
        assert {name: role["groups"] for name, role in roles.items()} == {
            "judge-model": ["writing", "ratings"],
            "verifier": ["verdicts"],
        }
        assert bench.manifest["judge"]["model"] == "verifier (verdicts) + judge-model (writing, ratings)"
        usage = {name: (role["usage"]["questions"], role["usage"]["requests"]) for name, role in roles.items()}
        assert usage == {"judge-model": (COLD["claims"] + COLD["questions"] + COLD["ratings"], 0), "verifier": (6, 6)}
        bench.run(judge={**served, "server": {"urls": [writer.url]}, "verdicts": verifier.url})
        assert Counter(map(kind_of, writer.asked)) == {kind: n for kind, n in COLD.items() if kind != "verdicts"}
        assert len(verifier.asked) == 6


def test_a_run_launches_the_judge_of_a_group_and_a_comparison_names_it(
    bench: Bench, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ASSAY_HOME", str(tmp_path / "home"))
    earlier = bench.folder / "earlier"
    shutil.copytree(bench.folder / "run", earlier)
    launch = {
        "python": sys.executable,
        "model": "tiny",
        "served_name": "launched-verifier",
        "entry": fake_verifier.__name__,
        "environment": {"PYTHONPATH": str(ROOT)},
    }
    served = {"backend": "server", "server": {"urls": [bench.judge.url]}}
    routed: dict[str, Any] = {"judge": {**served, "verdicts": {"launch": launch}}}
    checks = check_judge_servers(bench.config(judge={**served, "verdicts": bench.judge.url}))
    assert {each.name for each in checks} >= {"judge", "judge of verdicts"}
    bench.run(**routed)
    assert bench.asked == {}
    roles = {role["name"]: (role["groups"], role["usage"]["requests"]) for role in bench.manifest["judges"]}
    assert roles == {"judge-model": (["writing", "ratings"], 0), "launched-verifier": (["verdicts"], 6)}
    assert not judge_status(tmp_path / "home" / "judge-verdicts").healthy
    differences = compare_runs(earlier, bench.folder / "run", CompareOptions()).differences
    assert differences is not None
    assert any("verdicts" in each and "launched-verifier" in each for each in differences.serious)


def test_sampling_options_ask_only_requests_that_use_them(bench: Bench) -> None:
    voted = {"metric": "aspect_critic", "parameters": {"definition": "Is it kind?", "strictness": 3}}
    counted = {"metric": "discrete_criteria", "parameters": {"definition": "How kind?", "strictness": 3}}
    metrics = [*METRICS, voted, counted]
    bench.run(metrics=metrics)
    # Three votes on a label take one request, on a number three.
    votes = {"votes": 3, "counts": 9}
    assert bench.asked == votes
    once = {kind: count for kind, count in COLD.items() if kind != "questions"}
    for options, asked in (
        ({"seed": 4}, {"questions": 3} | votes),
        ({"temperature": 0.5}, once),
        ({"temperature": 0.5, "seed": 4}, once),
        ({"max_output_tokens": 99}, {"claims": 3, "questions": 3, "counts": 9}),
    ):
        bench.run(options=options, metrics=metrics)
        assert bench.asked == asked, options
    bench.run(metrics=metrics)
    assert (bench.asked, bench.embedded) == ({}, [])


def test_changed_embedder_or_stage_version_recomputes_what_depends_on_it(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    texts = set(bench.embedded)
    bench.embedder.models = ("another-embedder",)
    bench.run()
    assert (bench.asked, set(bench.embedded)) == ({}, texts)
    monkeypatch.setitem(STAGES, Stage.VERDICTS, replace(STAGES[Stage.VERDICTS], version=99))
    stored = bench.folder / "tables" / "rows"
    before = set(stored.glob("*/*"))
    bench.run()
    assert (bench.asked, bench.embedded) == ({}, [])
    # Results of another recipe, computed from cached answers; the scores are the same ones.
    assert {path.parent.name for path in set(stored.glob("*/*")) - before} == {"verdicts"}
    assert bench.stages["verdicts"]["stored"] == bench.stages["verdicts"]["questions"] == 6
