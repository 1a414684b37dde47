"""A judge that keeps its name and its replies to the probes, but answers differently: what is reported, and when."""

import json
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from flows.config.run_config import RunConfig
from flows.findings.preview import preview_run
from flows.monitor import run_monitor
from flows.planning.planner import draft_plan
from metric_core.errors import FailedCellsError, JudgeError
from metric_core.statistics.asked_again import count_rows
from tasks.findings.repeats.repeated_questions import RepeatedQuestions
from tasks.history.catalogue import Catalogue
from tasks.history.recorded_run import JUDGED, find_version_changes
from tasks.record.outcome import RunOutcome
from tasks.runs.finished_run import FinishedRun
from tasks.runs.outcome_file import read_outcome
from tests.tasks.models.judges.openai.fake_server import FakeServer, Fault, step

pytestmark = [pytest.mark.prefect, pytest.mark.models, pytest.mark.usefixtures("prefect_stub")]

ANCHOR_WORDS = ["easy"] * 40 + ["hard"] * 90 + ["broken"] * 30
WORDS = ["easy"] * 4 + ["hard"] * 24 + ["broken"] * 4
Verdict = Callable[[str], bool]


def refuses(*words: str) -> Verdict:
    """Return a judge that supports claims unless the passage has one of these words."""
    return lambda prompt: not any(f"The {word} passage" in prompt for word in words)


KNOWN, STRICTER = refuses("broken"), refuses("broken", "hard")


def rows(kind: str, words: Sequence[str] = WORDS) -> list[dict[str, Any]]:
    """Return a row per word, which says how a judge finds its claim."""
    return [
        {
            "id": f"row {number}",
            "user_input": "Where are bikes repaired?",
            "response": f"Hall 1 repairs bikes, says {kind} {number}.",
            "retrieved_contexts": [f"The {word} passage of {kind} {number}."],
        }
        for number, word in enumerate(words)
    ]


class Evaluation:
    """An evaluation that is monitored night after night, and its judge.

    Args:
        folder: Folder of all its files.
        server: Server of the judge.
    """

    def __init__(self, folder: Path, server: FakeServer) -> None:
        self.folder = folder
        self.server = server
        self.verdict = KNOWN
        self.revision: str | None = None
        self.drift = 0.1
        self.words: Sequence[str] = WORDS
        self.folders: list[Path] = []
        self._told = 0
        server.say = self._say
        self._write("anchor", rows("anchor", ANCHOR_WORDS))

    def _say(self, body: dict[str, Any]) -> dict[str, Any] | Fault | None:
        if not body.get("logprobs"):
            return None
        content = "yes" if self.verdict(body["messages"][-1]["content"]) else "no"
        other = "no" if content == "yes" else "yes"
        return {"content": content, "steps": [step(content, {content: 0.9, other: 0.1})]}

    def _write(self, name: str, content: list[dict[str, Any]]) -> str:
        path = self.folder / f"{name}.jsonl"
        path.write_text("\n".join(map(json.dumps, content)), encoding="utf-8")
        return str(path)

    def configuration(self) -> RunConfig:
        number = len(self.folders) + 1
        own = {name: str(self.folder / name) for name in ("tables", "cache", "history")}
        return RunConfig.model_validate(
            {
                **own,
                "name": "support",
                "source": self._write("rows", rows(f"night {number}", self.words)),
                "anchor": {"source": str(self.folder / "anchor.jsonl"), "drift": self.drift},
                "metrics": ["faithfulness"],
                "judge": {"backend": "server", "server": {"urls": [self.server.url], "revision": self.revision}},
                "deploy": {
                    "baselines": str(self.folder / "baselines"),
                    "alerts": {"file": str(self.folder / "alerts.jsonl")},
                },
            }
        )

    def night(self) -> RunOutcome:
        self.server.bodies.clear()
        done = run_monitor(self.configuration())
        assert done.folder is not None
        self.folders.append(done.folder)
        outcome = read_outcome(done.folder)
        assert outcome is not None
        return outcome

    @property
    def entry(self) -> dict[str, Any]:
        """The entry of the last night on what was asked again."""
        found: dict[str, Any] = FinishedRun(self.folders[-1]).record.to_json()["anchor"]["asked_again"]
        return found

    def asked_about_anchor(self) -> int:
        return sum("passage of anchor" in body["messages"][-1]["content"] for body in self.server.asked)

    def alerts(self) -> list[dict[str, Any]]:
        """Return the alerts since the last call."""
        path = self.folder / "alerts.jsonl"
        lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
        new, self._told = lines[self._told :], len(lines)
        return [json.loads(line) for line in new]


@pytest.fixture
def evaluation(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Evaluation]:
    monkeypatch.chdir(tmp_path)
    with FakeServer() as server:
        yield Evaluation(tmp_path, server)


def preview(evaluation: Evaluation) -> tuple[int, int]:
    """Return the rows of the anchor that a dry run says are asked about again, and the number of questions."""
    found = preview_run(draft_plan(evaluation.configuration()))
    of_anchor, again = found.of_findings["anchor"], found.of_findings["asked_again"]
    assert again is not None
    assert of_anchor is not None
    asked = again.dry_run.tally.asked
    assert found.tally.asked == asked + of_anchor.dry_run.tally.asked + 2 * len(WORDS)
    return again.dry_run.rows, asked


@pytest.mark.simulation
def test_a_judge_that_answers_otherwise_is_told_once_and_named_as_the_cause(
    evaluation: Evaluation, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert preview(evaluation) == (len(ANCHOR_WORDS),) * 2
    for number in range(3):
        assert evaluation.night().incidents.opened == ()
        assert evaluation.asked_about_anchor() == len(ANCHOR_WORDS) * (2 if number == 0 else 1)
        assert (evaluation.entry["rows"], evaluation.entry["questions"]) == (len(ANCHOR_WORDS),) * 2
        assert evaluation.entry["usage"]["requests"] == len(ANCHOR_WORDS)
        found = FinishedRun(evaluation.folders[-1]).record.to_json()["judge_variance"]["faithfulness"]
        assert (found["of_anchor"], found["rows"], found["judge"]) == (True, len(ANCHOR_WORDS), 0.0)
        assert found["advice"] == "more rows help, more votes do not"
    assert evaluation.alerts() == []
    assert preview(evaluation) == (count_rows(0.1, len(ANCHOR_WORDS))[0],) * 2

    evaluation.verdict = STRICTER
    told = evaluation.night()

    assert evaluation.asked_about_anchor() == evaluation.entry["rows"] == count_rows(0.1, len(ANCHOR_WORDS))[0]
    assert FinishedRun(evaluation.folders[-1]).record.to_json()["anchor"]["usage"]["asked"] == 0
    assert [(each.key, each.kind) for each in told.incidents.opened] == [
        ("judge:judge-model", "judge"),
        ("alarm:faithfulness", "alarm"),
    ]
    assert told.alarms[0].cause == "judge"
    (alert,) = evaluation.alerts()
    of_judge = f"the judge judge-model at {evaluation.server.url} answers differently under the same name since "
    (sentence,) = (line for line in alert["worse"] if line.startswith(of_judge))
    assert "anchor rows asked again got another verdict, none is usual. Cached answers are those" in sentence
    assert sum("answers differently" in line for line in alert["worse"]) == 2, (
        "the incident, and the cause of the alarm"
    )
    runs = Catalogue(str(evaluation.folder / "history")).runs("support")
    assert [change.what for change in find_version_changes(*runs[-2:])] == [JUDGED]
    assert find_version_changes(*runs[-3:-1]) == ()

    outcome = evaluation.night()
    assert "judge" in {each.kind for each in outcome.incidents.continuing}
    assert outcome.alarms[0].cause == "judge"

    def refuse(*_: Any) -> Any:
        raise JudgeError("the judge is lost")

    with monkeypatch.context() as patch:
        patch.setattr(RepeatedQuestions, "ask", refuse)
        outcome = evaluation.night()
    assert evaluation.entry["reason"] == "the judge is lost"
    warnings = FinishedRun(evaluation.folders[-1]).record.to_json()["warnings"]
    assert any("another judge of the same name will not show: the judge is lost" in warning for warning in warnings)
    assert outcome.incidents.recovered == (), "a judge that cannot be asked has not recovered"
    assert "judge" in {each.kind for each in outcome.incidents.continuing}
    assert evaluation.alerts() == []

    evaluation.revision = "stricter"
    outcome = evaluation.night()
    assert evaluation.asked_about_anchor() == 2 * len(ANCHOR_WORDS), "all is asked again, and then once more"
    assert [each.kind for each in outcome.incidents.recovered] == ["judge"]
    assert outcome.alarms[0].cause == "judge", "the anchor is judged by the new judge"


@pytest.mark.simulation
def test_judge_that_gives_everything_one_answer_is_asked_about_the_whole_anchor_and_told_at_once(
    evaluation: Evaluation,
) -> None:
    for _ in range(4):
        evaluation.night()
    assert (evaluation.entry["rows"], evaluation.alerts()) == (count_rows(0.1, len(ANCHOR_WORDS))[0], [])
    evaluation.verdict = lambda _: True

    told = evaluation.night()

    assert evaluation.entry["rows"] == len(ANCHOR_WORDS)
    assert evaluation.asked_about_anchor() == len(ANCHOR_WORDS), "none is asked about twice"
    assert [each.key for each in told.incidents.opened] == ["judge:judge-model"]
    assert told.message.startswith("evaluation support is inconclusive")
    (alert,) = evaluation.alerts()
    (sentence,) = alert["worse"]
    assert sentence.startswith(f"the judge judge-model at {evaluation.server.url} answers everything alike since ")
    assert "all 160 answers about the anchor are 'yes', where 30 were not" in sentence
    evaluation.night()
    assert evaluation.entry["rows"] == count_rows(0.1, len(ANCHOR_WORDS))[0], "it is known by now"
    evaluation.verdict = KNOWN
    assert evaluation.night().incidents.recovered == (), "one good night is no proof"


def test_judge_that_writes_no_claims_ends_no_run(evaluation: Evaluation, monkeypatch: pytest.MonkeyPatch) -> None:
    def say(body: dict[str, Any]) -> dict[str, Any] | None:
        schema = body.get("response_format", {}).get("json_schema", {}).get("schema", {})
        return {"content": json.dumps({name: [] for name in schema.get("properties", {})})} if schema else None

    evaluation.night()
    evaluation.night()
    monkeypatch.setattr(evaluation.server, "say", lambda body: evaluation._say(body) or say(body))
    for revision in (None, "new"):
        evaluation.revision = revision
        with pytest.raises(FailedCellsError, match="most often: no claims in the response"):
            evaluation.night()


@pytest.mark.simulation
def test_run_whose_scores_are_all_the_same_by_no_chance_has_the_whole_anchor_asked_about(
    evaluation: Evaluation,
) -> None:
    evaluation._write("anchor", rows("anchor", ["easy"] * 159 + ["broken"]))
    evaluation.words = ["easy"] * 20 + ["broken"] * 20
    for _ in range(4):
        evaluation.night()
    some = evaluation.entry["rows"]
    evaluation.verdict = lambda _: True
    evaluation.night()
    assert (some, evaluation.entry["rows"]) == (count_rows(0.1, 160)[0], 160)


def test_nothing_is_asked_again_without_a_drift_to_look_for(evaluation: Evaluation) -> None:
    evaluation.drift = 0.0
    evaluation.night()
    asked = evaluation.asked_about_anchor()
    evaluation.night()
    assert (asked, evaluation.asked_about_anchor()) == (len(ANCHOR_WORDS), 0)
    assert FinishedRun(evaluation.folders[-1]).record.to_json()["anchor"]["asked_again"] is None
