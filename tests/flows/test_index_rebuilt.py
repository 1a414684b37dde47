"""The flow `index-rebuilt`: accepted and rejected versions, and alerts."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from prefect.blocks.notifications import CustomWebhookNotificationBlock

from flows.config.run_config import RunConfig
from flows.evaluate import Evaluation, run_evaluation
from flows.index_rebuilt import index_rebuilt
from tasks.runs.baselines import Baselines
from tasks.runs.run_folder import COMPARISON
from tests.json_endpoint import JsonEndpoint

pytestmark = [pytest.mark.prefect, pytest.mark.models]

ROWS = 40


def row(number: int, answer: str) -> dict[str, Any]:
    return {
        "id": f"r{number}",
        "user_input": f"What does hall {number} do?",
        "response": answer,
        "retrieved_contexts": [f"Hall {number} repairs bikes. It opens at nine."],
    }


def write(path: Path, *, wrong: int = 0, reworded: int = 0) -> str:
    """Write a data set of supported responses, of which some are wrong or reworded, and return its path."""
    answers = [f"Hall {number} repairs bikes." for number in range(ROWS)]
    answers[:wrong] = [f"The moon of planet {number} is made of cheese." for number in range(wrong)]
    answers[:reworded] = [f"Bikes are what hall {number} repairs." for number in range(reworded)]
    rows = [row(number, answer) for number, answer in enumerate(answers)]
    path.write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    return str(path)


class Index:
    """An index with a baseline, whose versions are evaluated.

    Args:
        folder: Folder of all files of the index.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.good = write(folder / "good.jsonl")
        self.bad = write(folder / "bad.jsonl", wrong=30)
        self.settings: dict[str, Any] = {
            "baselines": str(folder / "baselines"),
            "alerts": {"file": str(folder / "alerts.jsonl")},
        }
        self.config: dict[str, Any] = {
            "source": str(folder / "questions.jsonl"),
            "metrics": ["faithfulness"],
            "tables": str(folder / "tables"),
            "cache": str(folder / "answers.db"),
            "history": str(folder / "history.db"),
        }

    def evaluate_version(self, version: str, dataset: str, **more: Any) -> tuple[str, str]:
        """Evaluate a version, and return the name and the message of the final state of its run."""
        config = RunConfig.model_validate({**self.config, "deploy": self.settings})
        state = index_rebuilt(config, index="handbook", version=version, dataset=dataset, return_state=True, **more)
        return state.name or "", state.message or ""

    @property
    def baseline(self) -> str | None:
        current = Baselines(self.settings["baselines"]).current("handbook")
        return None if current is None else current.version

    @property
    def alerts(self) -> list[dict[str, Any]]:
        path = self.folder / "alerts.jsonl"
        return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()] if path.exists() else []


@pytest.fixture
def index(tmp_path: Path, prefect_stub: object, monkeypatch: pytest.MonkeyPatch) -> Index:
    del prefect_stub
    monkeypatch.chdir(tmp_path)
    return Index(tmp_path)


@pytest.fixture
def served_index(tmp_path: Path, prefect_server: str, monkeypatch: pytest.MonkeyPatch) -> Index:
    """Return an index whose flows run on a real Prefect server."""
    del prefect_server
    monkeypatch.chdir(tmp_path)
    return Index(tmp_path)


@pytest.fixture
def webhook() -> Iterator[JsonEndpoint]:
    with JsonEndpoint() as running:
        yield running


def test_first_version_and_good_successor_become_the_baseline(index: Index) -> None:
    assert index.evaluate_version("v1.9", index.good)[0] == "Accepted"
    name, message = index.evaluate_version("v1.10", write(index.folder / "next.jsonl", reworded=2))
    assert (name, index.baseline) == ("Accepted", "v1.10")
    assert message == "version v1.10 is now the baseline of index handbook: it passed the gate against version v1.9"
    current = Baselines(index.settings["baselines"]).current("handbook")
    assert current is not None
    usage = json.loads(Path(current.folder, "run.json").read_text(encoding="utf-8"))["usage"]
    assert 0 < usage["questions"] - usage["stored"] <= 0.1 * usage["questions"]  # two rows of forty
    assert Path(current.folder, COMPARISON).is_file()
    assert index.alerts == []


def test_worse_version_is_rejected_with_an_alert_that_names_the_metrics(
    served_index: Index, webhook: JsonEndpoint, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ALERTS", webhook.url)
    CustomWebhookNotificationBlock(
        name="team", url=webhook.url, method="POST", json_data={"outcome": "block", "said": "{{subject}}"}
    ).save("team", overwrite=True)
    served_index.settings["alerts"] |= {
        "webhook": "env:ALERTS",
        "block": "custom-webhook/team",
        "link": "https://reports.example/{name}",
    }
    served_index.evaluate_version("1", served_index.good)
    name, message = served_index.evaluate_version("2", served_index.bad)
    assert (name, served_index.baseline) == ("Failed", "1")
    block, alert = sorted(webhook.received, key=len)  # they are sent at the same time
    assert block == {"outcome": "block", "said": "index handbook, version 2 was not accepted: the gate failed"}
    assert (alert["index"], alert["version"], alert["outcome"], alert["baseline"]) == ("handbook", "2", "failed", "1")
    assert alert["text"] == message
    assert any(re.match(r"faithfulness: from (1\.0|0\.[89])\d* to 0\.", sentence) for sentence in alert["worse"])
    assert alert["report"].startswith("https://reports.example/20")
    assert alert["report"].endswith(f"-bad/{COMPARISON}")
    assert [each["version"] for each in served_index.alerts] == ["2"]
    assert webhook.url not in json.dumps(served_index.alerts)


def test_older_version_is_superseded_by_the_baseline(index: Index) -> None:
    index.evaluate_version("10", index.good)
    runs = len(list(Path("runs").iterdir()))
    name, message = index.evaluate_version("9", index.good)
    assert (name, index.baseline) == ("Superseded", "10")
    assert message == "version 9 of index handbook is older than its baseline, version 10"
    assert len(list(Path("runs").iterdir())) == runs


def test_version_superseded_during_its_run_is_not_accepted(index: Index, monkeypatch: pytest.MonkeyPatch) -> None:
    from flows import index_rebuilt as module

    def slowly(*arguments: Any, **names: Any) -> Evaluation:
        found = run_evaluation(*arguments, **names)
        monkeypatch.setattr(module, "run_evaluation", run_evaluation)
        assert index.evaluate_version("3", index.good)[0] == "Accepted"
        return found

    monkeypatch.setattr(module, "run_evaluation", slowly)
    assert index.evaluate_version("2", index.good)[0] == "Superseded"
    assert index.baseline == "3"


def test_failed_evaluation_sends_an_alert(index: Index) -> None:
    name, message = index.evaluate_version("1", "nowhere.jsonl")
    assert name == "Failed"
    assert "nowhere.jsonl does not exist" in message
    (alert,) = index.alerts
    assert (alert["outcome"], alert["version"]) == ("error", "1")
    assert "nowhere.jsonl does not exist" in alert["text"]


def test_version_without_scores_is_not_accepted_even_as_the_first(index: Index) -> None:
    index.config["metrics"] = ["nv_context_relevance"]  # the built-in judge cannot rate
    name, message = index.evaluate_version("1", index.good)
    assert (name, index.baseline) == ("Failed", None)
    assert "no cell has a value" in message
    (alert,) = index.alerts
    assert (alert["outcome"], alert["report"]) == ("error", Path(alert["folder"], "report.html").as_uri())


@pytest.mark.parametrize(
    ("version", "dataset", "more", "expected"),
    [
        ("", "data.jsonl", {}, "the event rag.index.rebuilt lacks version"),
        ("1", "", {}, "lacks dataset"),
        ("1", "retriever:", {}, "this deployment has no retriever"),
        ("1", "data.jsonl", {"announced": "yesterday"}, "announced must be a time"),
    ],
)
def test_invalid_payload_fails_the_run_with_a_message(
    index: Index, version: str, dataset: str, more: dict[str, str], expected: str
) -> None:
    name, message = index.evaluate_version(version, dataset, **more)
    assert name == "Failed"
    assert expected in message
    assert expected in index.alerts[0]["text"]


def test_undeliverable_alert_is_written_to_the_home(
    index: Index, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ASSAY_HOME", str(tmp_path))
    monkeypatch.setenv("ALERTS", "http://127.0.0.1:9/secret-path")
    index.settings["alerts"] = {"webhook": "env:ALERTS", "block": "slack-webhook/none"}
    index.evaluate_version("", index.good)
    (line,) = (tmp_path / "alerts.jsonl").read_text(encoding="utf-8").splitlines()
    assert "lacks version" in line
    assert "secret-path" not in line
