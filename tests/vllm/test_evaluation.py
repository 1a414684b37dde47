"""An evaluation judged by a real vLLM: each question of a metric is answered, counted, and asked only once.

The model is too small for meaningful verdicts, and some of its completions are cut off: only the cells of those fail.
"""

import json
import sqlite3
from collections import Counter
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from deployments.local_server import use_server
from flows.config.run_config import RunConfig
from flows.evaluate import run_evaluation
from metric_core.records import Side, VerdictKind
from tasks.models.judges.openai import request_mode
from tests.sharing import ensure_local_server
from tests.vllm.conftest import MODEL

pytestmark = [pytest.mark.prefect, pytest.mark.models]

EXAMPLE = Path(__file__).parents[2] / "examples" / "handbook.jsonl"
ROWS = 3
METRICS = (
    "faithfulness",
    "answer_relevancy(strictness=1)",
    "key_point_recall",
    "context_precision",
    "context_utilization",
    "context_recall",
    "context_relevancy",
    "answer_correctness",
    "factual_correctness",
    "noise_sensitivity",
    "nv_accuracy",
    "nv_context_relevance",
    "nv_response_groundedness",
    "aspect_critic(definition=Is the answer polite?)",
    "discrete_criteria(definition=Is the answer polite?)",
    "numeric_criteria(definition=Is the answer polite?)",
)


SAMPLING = {"temperature": 1.0, "seed": 3}
"""Sampling parameters: at temperature 0 the model repeats its first claim forever."""


class Run:
    """A finished run.

    Args:
        folder: Path of the run folder.
        cached: Number of answers of the judge that the cache has after the run.
    """

    def __init__(self, folder: Path, cached: int) -> None:
        self.cached = cached
        self.manifest: dict[str, Any] = json.loads((folder / "run.json").read_text(encoding="utf-8"))
        self.summary: dict[str, Any] = json.loads((folder / "summary.json").read_text(encoding="utf-8"))
        self.scores = pq.read_table(folder / "scores.parquet").to_pylist()
        self.tables = {path.stem: pq.read_table(path).to_pylist() for path in (folder / "stages").glob("*.parquet")}


@pytest.fixture(scope="module")
def home(server_home: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Yield an empty home, with a running Prefect server."""
    folder = tmp_path_factory.mktemp("evaluation")
    with pytest.MonkeyPatch.context() as patch:
        for name in ("QUESTIONS_TEMPERATURE", "VOTES_TEMPERATURE"):
            patch.setattr(request_mode, name, SAMPLING["temperature"])
        url = ensure_local_server(server_home)
        patch.setenv("ASSAY_HOME", str(folder))
        patch.setenv("PREFECT_LOGGING_LEVEL", "CRITICAL")
        with use_server(url):
            yield folder


def evaluate(home: Path, vllm_url: str, name: str) -> Run:
    server = {"urls": [vllm_url], "max_output_tokens": 256, "concurrency": 32, "timeout": 600, **SAMPLING}
    values = {
        "source": str(EXAMPLE),
        "limit": ROWS,
        "metrics": METRICS,
        "judge": {"backend": "server", "server": server},
        "fail_on_failed": 1.0,
        "out": str(home / name),
    }
    folder = Path(run_evaluation(RunConfig.model_validate(values)).folder)
    with closing(sqlite3.connect(home / "answers.db")) as database:
        ((cached,),) = database.execute("select count(*) from assay_answers where step in ('choice', 'generate')")
    return Run(folder, cached)


@pytest.fixture(scope="module")
def run(home: Path, vllm_url: str) -> Run:
    """Return the first run."""
    return evaluate(home, vllm_url, "first")


def test_manifest_is_complete_and_names_the_judge(run: Run) -> None:
    assert (run.manifest["status"], run.manifest["rows"]) == ("completed", ROWS)
    assert run.manifest["judge"]["model"] == MODEL
    assert run.manifest["judge_features"]["json"] == "response_format"


def test_usage_is_counted(run: Run) -> None:
    usage = run.manifest["usage"]
    assert run.manifest["judge_features"]["batches"]
    assert usage["questions"] > max(12 * ROWS, usage["requests"])
    # The model makes the same claim of several texts, so that questions about it recur; none is asked twice.
    assert usage["questions"] - usage["stored"] == run.cached + sum(usage["failed"].values())
    # Several conversations in one request: the server tells what was cached of those that were sent alone.
    assert usage["prompt_tokens"] >= usage["unreported_tokens"] + usage["cached_tokens"] > 1000
    assert usage["output_tokens"] > usage["requests"]
    for stage in ("claims", "questions", "ratings", "verdicts"):
        assert run.manifest["stages"][stage]["requests"] > 0
        assert run.manifest["stages"][stage]["prompt_tokens"] > 0


def test_every_kind_of_question_is_answered(run: Run) -> None:
    judged = {name: run.tables[name] for name in ("claims", "questions", "verdicts", "ratings")}
    answered = {name: [row for row in rows if row["status"] == "answered"] for name, rows in judged.items()}
    assert {row["side"] for row in answered["claims"]} >= {Side.RESPONSE, Side.REFERENCE}
    assert answered["questions"]
    kinds = set(map(str, VerdictKind)) - {VerdictKind.FULL_SUPPORT}  # no answer of the example cites a passage
    assert {row["kind"] for row in answered["verdicts"]} == kinds
    rated = {(row["metric"], row["template"]) for row in run.tables["ratings"]}
    assert {(row["metric"], row["template"]) for row in answered["ratings"]} == rated
    assert len(rated) == 9


def test_verdicts_have_probabilities(run: Run) -> None:
    verdicts = [row for row in run.tables["verdicts"] if row["kind"] != VerdictKind.RELEVANCE]
    assert {row["status"] for row in verdicts} == {"answered"}
    for row in verdicts:
        assert 0 <= row["probability"] <= 1
    assert len({row["probability"] for row in verdicts}) > 3 * ROWS


def test_unusable_replies_fail_few_cells_and_are_counted(run: Run) -> None:
    failed = Counter(row["metric"] for row in run.scores if row["status"] == "failed")
    assert len(run.scores) == ROWS * len(run.summary["metrics"]) == ROWS * len(METRICS)
    assert {metric["metric"]: metric["failed"] for metric in run.summary["metrics"] if metric["failed"]} == failed
    assert failed.total() <= len(run.scores) / 4
    assert bool(failed) == bool(run.manifest["usage"]["failed"])


def test_second_run_asks_only_unanswered_questions(run: Run, home: Path, vllm_url: str) -> None:
    again = evaluate(home, vllm_url, "second")
    assert again.manifest["status"] == "completed"
    assert again.manifest["usage"]["questions"] - again.manifest["usage"]["stored"] <= sum(
        run.manifest["usage"]["failed"].values()
    )
    scored = {(row["row_id"], row["metric"]): row["value"] for row in run.scores if row["status"] == "scored"}
    values = {(row["row_id"], row["metric"]): row["value"] for row in again.scores}
    assert again.manifest["usage"]["stored"] > 12 * ROWS
    assert {key: values[key] for key in scored} == scored
