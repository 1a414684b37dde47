"""Rows of a run are kept until they graduate, retire or fail again, through rebuilds; a killed process loses none."""

import json
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

import pytest

from flows.config.run_config import RunConfig
from flows.evaluate import run_evaluation
from metric_core.errors import ConfigError
from metric_core.prompts.judge_questions import CLAIM, CONTEXT, NO, YES, JudgeQuestion
from tasks.kept_rows.keep import KeepRequest, KeptSet, keep_rows
from tasks.kept_rows.keep_sink import parse_address
from tasks.models.judges.scripted import ScriptedJudge

pytestmark = [pytest.mark.prefect, pytest.mark.usefixtures("prefect_stub")]

HERE = "tests.flows.test_kept_rows"
HALLS = range(1, 7)
ORDER = [f"What does hall {hall} do?" for hall in HALLS]


def text(hall: int) -> str:
    return f"Hall {hall} repairs bikes and trailers. It opens at {hall + 5} on all days but Sunday."


def fact(hall: int) -> str:
    return f"opens at {hall + 5} on"


class Reader(ScriptedJudge):
    """A judge to which a text states a fact if it has its words."""

    def __init__(self) -> None:
        super().__init__(self._states, "reader")

    @staticmethod
    def _states(question: JudgeQuestion) -> str:
        return YES if question.texts[CLAIM] in question.texts[CONTEXT] else NO


class Search:
    """The search of the index: the chunks of the hall that a question is about, and one of another hall."""

    identity = "halls"
    chunks: ClassVar[Sequence[Mapping[str, str]]] = ()

    def retrieve(self, query: str) -> Sequence[Any]:
        """Return the passages for a question."""
        hall = query.removeprefix("What does ").removesuffix(" do?")
        own = [each for each in self.chunks if each["document"] == f"{hall}.md"]
        return [{"id": each["id"], "text": each["text"]} for each in (*own, self.chunks[-1])]


class Assistant:
    """An assistant that gets some halls wrong."""

    wrong: ClassVar[Sequence[int]] = ()

    def generate(self, query: str, passages: Sequence[str]) -> str:
        """Return the response to a question."""
        is_wrong = any(f"hall {hall} " in query for hall in self.wrong)
        return "It is closed." if is_wrong else " ".join(passages[:-1])


class World:
    """An index that is rebuilt, and an assistant on it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.kept = folder / "set.jsonl"
        self.index = folder / "chunks.jsonl"
        questions = [
            {"id": f"r{hall}", "user_input": question, "key_points": [fact(hall)]}
            for hall, question in zip(HALLS, ORDER, strict=True)
        ]
        self.questions = self._write("questions.jsonl", questions)

    def _write(self, name: str, rows: Sequence[Mapping[str, Any]]) -> str:
        (self.folder / name).write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
        return str(self.folder / name)

    def build(self, *, parts: int = 1, without: Sequence[int] = (), edited: Sequence[int] = ()) -> None:
        """Write the chunks of a version: the sentences of each hall, in one chunk or in several."""
        chunks = []
        for hall in (each for each in HALLS if each not in without):
            body = text(hall).replace("Sunday", "Monday") if hall in edited else text(hall)
            sentences = [body] if parts == 1 else [f"{body.split('. ')[0]}.", body.split(". ")[1]]
            for number, part in enumerate(sentences):
                chunks.append({"id": f"{hall}-{parts}-{number}", "document": f"hall {hall}.md", "text": part})
        self._write(
            self.index.name, [*chunks, {"id": "menu", "document": "menu.md", "text": "Home, about, contact us."}]
        )
        Search.chunks = [*chunks, {"id": "menu", "document": "menu.md", "text": "Home, about, contact us."}]

    def run(self, name: str, source: str, *wrong: int, **more: Any) -> Path:
        """Evaluate the assistant, and return the run folder."""
        Assistant.wrong = wrong
        options = {
            "source": source,
            "metrics": ["key_point_recall"],
            "judge": {"backend": f"{HERE}:Reader"},
            "retriever": {"index": f"{HERE}:Search", "generator": f"{HERE}:Assistant"},
            "chunks": str(self.index),
            "out": str(self.folder / name),
            "tables": str(self.folder / "tables"),
        }
        return Path(run_evaluation(RunConfig.model_validate(options | more)).folder)

    def keep(self, run: Path, *where: str, **more: Any) -> KeptSet:
        return keep_rows(KeepRequest(run, self.kept, where, **more))

    def rows(self) -> dict[int, dict[str, Any]]:
        """Return the rows of the set by their halls."""
        rows = [json.loads(line) for line in self.kept.read_text(encoding="utf-8").splitlines()]
        return {ORDER.index(row["user_input"]) + 1: row for row in rows}

    def states(self) -> dict[int, str]:
        return {hall: row["kept"]["state"] for hall, row in self.rows().items()}


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path)


def test_rows_graduate_retire_or_still_fail_in_three_rebuilds(world: World) -> None:
    world.build()
    result = world.keep(world.run("1", world.questions, 1, 2, 3, 4), "key_point_recall < 1")
    assert world.states() == dict.fromkeys((1, 2, 3, 4), "failing")
    assert [row.content["user_input"] for row in result.new] == ORDER[:4]
    assert world.rows()[1]["kept"]["response"] == "It is closed."
    first = result.index

    world.build(parts=2)
    run = world.run("2", f"kept:{world.kept}", 3)
    assert [change[1] for change in world.keep(run).changes] == ["failing"] * 3
    assert world.states() == {1: "improving", 2: "improving", 3: "failing", 4: "improving"}

    world.build(without=[2])
    world.keep(world.run("3", f"kept:{world.kept}", 3, 4))
    assert world.states() == {1: "improving", 2: "retired", 3: "failing", 4: "failing"}

    world.build(parts=2, without=[2, 5])
    fourth = world.run("4", f"kept:{world.kept}", 3)
    assert json.loads((fourth / "run.json").read_text(encoding="utf-8"))["rows"] == 3
    last = world.keep(fourth)
    assert world.states() == {1: "graduated", 2: "retired", 3: "failing", 4: "improving"}
    assert {str(state): count for state, count in last.states.items()} == {
        "graduated": 1,
        "retired": 1,
        "failing": 1,
        "improving": 1,
    }

    history = {hall: row["kept"]["history"] for hall, row in world.rows().items()}
    assert [each["result"] for each in history[1]] == ["kept", "good", "good", "good"]
    assert [each["result"] for each in history[2]] == ["kept", "good", "gone"]
    assert history[2][-1]["why"] == "its evidence is gone"
    assert [each["why"] for each in history[3]] == ["key_point_recall 0.00"] * 4
    assert [each["result"] for each in history[4]] == ["kept", "good", "bad", "good"]
    assert len({each["index"] for each in history[3]}) == 4
    assert history[1][0]["index"] == first

    world.build()
    world.keep(world.run("5", world.questions, 1))
    assert world.states() == {1: "failing", 2: "improving", 3: "improving", 4: "improving"}
    assert [each["result"] for each in world.rows()[2]["kept"]["history"]][-2:] == ["back", "good"]


def test_a_row_is_not_kept_twice_and_an_older_run_changes_nothing(world: World) -> None:
    world.build()
    first = world.run("1", world.questions, 1, 2)
    time.sleep(1)  # runs know their start to the second
    second = world.run("2", world.questions, 2)
    world.keep(second, "failed")
    before = world.kept.read_bytes()
    for run in (second, first):
        world.keep(run)
        assert world.kept.read_bytes() == before
    world.keep(first, "passage ignored", "failed")
    assert world.states() == {1: "failing", 2: "failing"}
    assert world.rows()[1]["kept"]["where"] == ["passage ignored", "failed"]
    assert world.rows()[2]["kept"]["where"] == ["failed"]


def test_a_full_set_takes_no_more_until_rows_retire(world: World) -> None:
    world.build()
    result = world.keep(world.run("1", world.questions, *HALLS), "failed", most=2)
    assert (len(result.new), result.left_out) == (2, 4)
    world.build(edited=[1])
    result = world.keep(world.run("2", world.questions, *HALLS), "failed", most=2)
    assert (len(result.new), result.left_out) == (1, 3)
    assert world.states() == {1: "retired", 2: "failing", 3: "failing"}
    assert world.rows()[1]["kept"]["history"][-1]["why"] == "its evidence was edited: 'sunday' became 'monday'"


def test_runs_keep_what_they_find_up_to_a_limit(world: World) -> None:
    world.build()
    sinks = {"keep": f"{world.kept}?where=failed&most=2"}
    world.run("1", world.questions, 1, 2, 3, sinks=sinks)
    assert world.states() == {1: "failing", 2: "failing"}
    world.build(parts=2)
    world.run("2", world.questions, 2, 3, sinks=sinks)
    assert world.states() == {1: "improving", 2: "failing"}
    with pytest.raises(ConfigError, match=r"set\.jsonl\?where=failed"):
        parse_address(f"{world.kept}?were=failed", world.folder)


def test_what_people_write_into_the_set_stays(world: World) -> None:
    world.build()
    run = world.run("1", world.questions, 1)
    own = {"id": "own", "user_input": ORDER[1], "reference": "It repairs bikes."}
    world.kept.write_text(f"{json.dumps(own)}\n", encoding="utf-8")
    world.keep(run, "failed")
    rows = world.rows()
    rows[1]["reference"], rows[1]["owner"] = "It repairs bikes and trailers.", "Ada"
    world.kept.write_text("\n".join(map(json.dumps, rows.values())), encoding="utf-8")
    world.build(parts=2)
    world.keep(world.run("2", world.questions, 2), "failed")
    found = world.rows()
    assert found[2] == own
    assert (found[1]["owner"], found[1]["kept"]["state"]) == ("Ada", "improving")


def hide(value: str) -> str:
    return value.replace("closed", "***").replace("trailers", "***")


def test_rows_are_redacted(world: World) -> None:
    world.build()
    world.keep(world.run("1", world.questions, 1), "failed", redact=f"{HERE}:hide")
    kept = world.rows()[1]["kept"]
    assert kept["response"] == "It is ***."
    assert "trailers" not in world.kept.read_text(encoding="utf-8")
    assert kept["evidence"][0]["text"].startswith("Hall 1 repairs bikes and ***.")


def test_without_the_chunks_of_the_index_no_row_graduates_or_retires(world: World) -> None:
    world.build()
    assert world.keep(world.run("1", world.questions, 1, 2, chunks=None), "failed").index is None
    for number in (2, 3, 4):
        world.build(parts=number % 2 + 1, without=[2] * (number == 4))
        world.keep(world.run(str(number), world.questions, 2, chunks=None), graduates_after=1)
    assert world.states() == {1: "improving", 2: "failing"}


KILLED = """
import os, signal, sys
from pathlib import Path
from tasks.kept_rows import set_file
from tasks.kept_rows.keep import KeepRequest, keep_rows
set_file.sync_to_disk = lambda path: os.kill(os.getpid(), signal.SIGKILL)
keep_rows(KeepRequest(Path(sys.argv[1]), Path(sys.argv[2]), ["failed"]))
"""


def test_a_killed_process_leaves_the_set_whole(world: World) -> None:
    world.build()
    world.keep(world.run("1", world.questions, 1, 2), "failed")
    before = world.kept.read_bytes()
    run = world.run("2", world.questions, 2, 3)
    done = subprocess.run([sys.executable, "-c", KILLED, str(run), str(world.kept)], check=False)
    assert done.returncode == -9
    assert world.kept.read_bytes() == before
    world.keep(run, "failed")
    assert world.states() == {1: "improving", 2: "failing", 3: "failing"}
