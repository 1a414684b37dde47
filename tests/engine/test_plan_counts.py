"""`assay plan` says what a run asks: its numbers are those that a stub of the judge server counts.

A configuration and its data change at random, again and again, with the same stores. `ASSAY_TEST_CHANGES` sets the
number of changes, and `ASSAY_TEST_SEED` another walk.
"""

import json
import os
import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from metric_core.stages import Stage
from tasks.engine.registry import STAGES
from tests.deployments.cli.conftest import Outcome
from tests.faults.stub_server import answer_to
from tests.tasks.models.judges.openai.fake_server import FakeServer

pytestmark = [pytest.mark.prefect, pytest.mark.models]

CHANGES = int(os.environ.get("ASSAY_TEST_CHANGES", "5"))
SEED = int(os.environ.get("ASSAY_TEST_SEED", "1"))
METRICS = (
    *("faithfulness", "answer_relevancy", "answer_relevancy(strictness=2)", "context_precision", "context_recall"),
    *("context_relevancy", "factual_correctness", "noise_sensitivity", "answer_correctness", "answer_similarity"),
    *("nv_accuracy", "nv_response_groundedness", "aspect_critic(definition=Is it polite?,strictness=3)"),
)
COMPLETED = (0, 8)
"""Exit codes of a run that wrote its folder; in the second case, all cells of a metric failed."""


@dataclass
class Changing:
    """A configuration and its data, which change at random.

    Args:
        folder: Folder of the source and the stores.
        url: Address of the judge server.
        chance: Source of the randomness.
    """

    folder: Path
    url: str
    chance: random.Random
    rows: dict[str, dict[str, Any]] = field(default_factory=dict)
    options: dict[str, Any] = field(default_factory=dict)
    texts: int = 0

    def __post_init__(self) -> None:
        self.options = {
            "metrics": ["faithfulness", "answer_relevancy", "nv_accuracy"],
            "shard_rows": 3,
            "tables": str(self.folder / "tables"),
            "cache": str(self.folder / "answers.db"),
        }
        for _ in range(5):
            self.add_row()

    @property
    def changes(self) -> tuple[Callable[[], None], ...]:
        """The possible changes; one that is listed twice is likelier."""
        of_rows = (self.add_row, self.remove_row, self.shuffle_rows, self.copy_row, self.blank_response)
        of_options = (self.toggle_metric, self.set_verdict, self.set_explain, self.set_shards, self.set_limit)
        of_stores = (self.refresh_stage, self.lose_tables, self.lose_answers, self.set_temperature, self.set_follow_ups)
        return (*of_rows, self.change_text, self.change_text, *of_options, self.toggle_metric, *of_stores)

    def change(self) -> str:
        """Change one to three things, and return their names."""
        self.options.pop("refresh", None)
        chosen = self.chance.sample(self.changes, self.chance.randint(1, 3))
        for each in chosen:
            each()
        if "refresh" in self.options and "faithfulness" not in self.options["metrics"]:
            self.options["metrics"].append("faithfulness")  # a run refuses to refresh a stage that it has no use for
        return ", ".join(each.__name__ for each in chosen)

    def write(self, out: str) -> str:
        """Write the source and the configuration of a run into a folder, and return the path of the configuration."""
        rows = "\n".join(json.dumps({"id": name, **row}) for name, row in self.rows.items())
        (self.folder / "rows.jsonl").write_text(rows, encoding="utf-8")
        fixed = {"source": str(self.folder / "rows.jsonl"), "out": str(self.folder / out)}
        server = {"urls": [self.url], **self.options.get("server", {})}
        content = {**self.options, **fixed, "judge": {"backend": "server", "server": server}}
        content.pop("server", None)
        (self.folder / "run.yaml").write_text(json.dumps(content), encoding="utf-8")
        return str(self.folder / "run.yaml")

    def add_row(self) -> None:
        self.texts += 1
        n = self.texts
        self.rows[f"r{n}"] = {
            "user_input": f"When does shop {n} open?",
            "response": f"Shop {n} opens at {n % 12}. It closes in the evening.",
            "retrieved_contexts": [f"Shop {n} opens at {n % 11}.", "Shops sell shoes."],
            "reference": f"Shop {n} opens at {n % 12}.",
            "earlier_turns": f"user: Is there a shop {n}?" if n % 2 else None,
        }

    def remove_row(self) -> None:
        if len(self.rows) > 2:
            del self.rows[self._any_row()]

    def shuffle_rows(self) -> None:
        rows = list(self.rows.items())
        self.chance.shuffle(rows)
        self.rows = dict(rows)

    def copy_row(self) -> None:
        self.texts += 1
        self.rows[f"copy-{self.texts}"] = dict(self.rows[self._any_row()])

    def blank_response(self) -> None:
        self.rows[self._any_row()]["response"] = None

    def change_text(self) -> None:
        self.texts += 1
        row, text = self.rows[self._any_row()], f"It snows on day {self.texts}."
        name = self.chance.choice(["user_input", "response", "reference", "retrieved_contexts"])
        row[name] = [*row[name][:1], text] if name == "retrieved_contexts" else text

    def toggle_metric(self) -> None:
        metric = self.chance.choice(METRICS)
        chosen: list[str] = self.options["metrics"]
        if metric not in chosen:
            chosen.append(metric)
        elif len(chosen) > 1:
            chosen.remove(metric)

    def set_verdict(self) -> None:
        self.options["verdict"] = self.chance.choice(["binary", "probability"])

    def set_explain(self) -> None:
        self.options["explain"] = self.chance.choice(["none", "unsupported", "ratings", "all"])

    def set_shards(self) -> None:
        self.options["shard_rows"] = self.chance.randint(1, 8)

    def set_limit(self) -> None:
        self.options["limit"] = self.chance.choice([None, 2, 4])

    def set_temperature(self) -> None:
        self.options["server"] = {"temperature": self.chance.choice([0, 0.5])}

    def set_follow_ups(self) -> None:
        self.options["follow_ups"] = self.chance.choice(["rewrite", "keep"])

    def refresh_stage(self) -> None:
        self.options["refresh"] = ["claims"]

    def lose_tables(self) -> None:
        self.texts += 1
        self.options["tables"] = str(self.folder / f"tables-{self.texts}")

    def lose_answers(self) -> None:
        self.texts += 1
        self.options["cache"] = str(self.folder / f"answers-{self.texts}.db")

    def _any_row(self) -> str:
        return self.chance.choice(list(self.rows))


@pytest.fixture
def judge() -> Iterator[FakeServer]:
    with FakeServer(say=answer_to) as server:
        yield server


def test_the_plan_says_what_the_stub_counts(
    judge: FakeServer,
    assay: Callable[..., Outcome],
    prefect_stub: object,  # noqa: ARG001
    tmp_path: Path,
) -> None:
    changing = Changing(tmp_path, judge.url, random.Random(SEED))
    changed = "a first run"
    said: set[str] = set()
    for number in range(CHANGES):
        file = changing.write(f"run-{number}")
        before = len(judge.asked)
        planned = assay("plan", file, "--json")
        assert planned.code == 0, (changed, planned.err)
        assert len(judge.asked) == before, f"the plan after {changed} asked the judge"
        done = assay("run", file, "--json")
        assert done.code in COMPLETED, (changed, done.err)
        manifest = json.loads((tmp_path / f"run-{number}" / "run.json").read_text(encoding="utf-8"))
        content = json.loads(planned.out)
        said |= check_stages(content, manifest["stages"], f"{number}: {changed}")
        counted = judge.asked[before:]
        assert len(counted) == manifest["usage"]["requests"], changed
        compare(content["judge"]["certainty"], content["judge"]["requests"], len(counted), f"{number}: {changed}")
        changed = changing.change()
    assert "exact" in said


def check_stages(plan: dict[str, Any], stages: dict[str, Any], when: str) -> set[str]:
    """Compare the questions of each stage of a plan with those of the run, and return how certain the plan was.

    Raises:
        AssertionError: A number that is said to be exact, or a lower bound, is not; or a number is uncertain although
            nothing is asked that it depends on.
    """
    judged = {Stage(each["stage"]): each["judge"] for each in plan["stages"] if each.get("judge") is not None}
    for stage, counts in judged.items():
        asked = stages[stage]["questions"] - stages[stage]["stored"]
        compare(counts["certainty"], counts["asked"], asked, f"{when}: {stage}")
        if counts["certainty"] != "exact":
            depends_on = [earlier for earlier in (stage, *_all_reads(stage)) if earlier in judged]
            assert any(judged[earlier]["asked"] or judged[earlier]["waiting"] for earlier in depends_on), (when, stage)
    return {counts["certainty"] for counts in judged.values()}


def compare(certainty: str, planned: int, counted: int, what: str) -> None:
    """Compare a planned number with what was counted, as its certainty demands.

    Raises:
        AssertionError: The number is not what it is said to be.
    """
    if certainty == "exact":
        assert counted == planned, what
    elif certainty == "at least":
        assert counted >= planned, what
    else:
        assert certainty == "estimated", what


def _all_reads(stage: Stage) -> set[Stage]:
    reads = {earlier for earlier in STAGES[stage].reads if earlier in STAGES}
    return reads.union(*map(_all_reads, reads))
