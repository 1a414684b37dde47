"""The composite action: its steps run as scripts, on a branch, on a pull request, and where something fails."""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import pytest

from tests.deployments.github.workflow import ACTION, FOLDER, Workflow, runner_environment
from tests.json_endpoint import JsonEndpoint
from tests.tasks.compared import write_run

NAME = "handbook"
GATE = "absolute = ['faithfulness.least >= 0']\n[regression]\nmax_drop = 0.05\nmetrics = ['faithfulness']\n"
ROWS = [
    {"row_id": f"{i}", "user_input": f"Where is number {i}?", "response": f"Number {i} is in Delft.",
     "retrieved_contexts": [f"Number {i} is in Delft."]}
    for i in range(40)
]  # fmt: skip

Start = Callable[..., Workflow]


def github_api(content: Any, _before: int) -> tuple[int, Any]:
    """Answer as GitHub's API does for a pull request that has a comment of a person and one of this action."""
    if "path" not in content:
        return 201, {"id": 8}
    quoted = {"id": 1, "user": {"type": "User"}, "body": f"<!-- rag-assay: {NAME} -->\nlook"}
    other = {"id": 2, "user": {"type": "Bot"}, "body": "<!-- rag-assay: other -->\n"}
    own = {"id": 3, "user": {"type": "Bot"}, "body": f"<!-- rag-assay: {NAME} -->\nold"}
    return 200, [quoted, other, own]


@pytest.fixture
def api() -> Iterator[JsonEndpoint]:
    with JsonEndpoint(github_api) as endpoint:
        yield endpoint


@pytest.fixture
def start(tmp_path: Path, prefect_server: str, api: JsonEndpoint) -> Start:
    """Return a function that makes a run of the workflow on one runner."""
    environment = runner_environment(
        tmp_path,
        NAME,
        PREFECT_API_URL=prefect_server,
        PREFECT_API_AUTH_STRING=os.environ["PREFECT_API_AUTH_STRING"],
        GITHUB_API_URL=api.url.removesuffix("/here"),
        GITHUB_SERVER_URL="https://github.example",
        GITHUB_REPOSITORY="owner/answers",
        GITHUB_RUN_ID="42",
        GITHUB_EVENT_PATH=str(tmp_path / "event.json"),
    )
    (tmp_path / "gate.toml").write_text(GATE, encoding="utf-8")

    def workflow(event: str, rows: list[dict[str, Any]] = ROWS, **inputs: str) -> Workflow:
        payload = {"pull_request": {"number": 7}} if event == "pull_request" else {}
        (tmp_path / "event.json").write_text(json.dumps(payload), encoding="utf-8")
        (tmp_path / "answers.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
        given = {
            "name": NAME,
            "config": "answers.jsonl",
            "arguments": "--metrics faithfulness\n--judge builtin",
            "gate": "gate.toml",
            **{name.replace("_", "-"): value for name, value in inputs.items()},
        }
        github = {"ref_name": "main", "run_id": "42", "run_attempt": "1", "token": "t", "base_ref": ""}
        return Workflow(tmp_path, given, {**environment, "GITHUB_EVENT_NAME": event}, github)

    return workflow


def copy_instead_of_evaluating(workflow: Workflow, run: Path) -> None:
    """Let `assay run` of the runner copy a finished run: what it evaluates does not matter."""
    program = workflow.root / "temp" / "rag-assay" / NAME / "venv" / "bin" / "assay"
    first, rest = program.read_text(encoding="utf-8").split("\n", 1)
    copy = f'if [ "$1" = run ]; then cp -r "{run}" "$4"; exit; fi'
    program.write_text(f"{first}\n{copy}\n{rest}", encoding="utf-8")


def worse(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [{**row, "response": "The moon has three rings."} for row in rows]


@pytest.mark.served
@pytest.mark.prefect
@pytest.mark.models
def test_a_branch_makes_the_baseline_and_a_pull_request_that_is_worse_fails_and_is_told(
    start: Start, api: JsonEndpoint
) -> None:
    branch = start("push")
    assert branch.run(), branch.log
    assert branch.outputs["check"] == {"outcome": "passed", "accepted": "true"}
    assert "There is no baseline: the rules that compare with one are left out." in branch.log
    assert api.asked == []
    saved = [given["key"] for action, given in branch.used if action.startswith("actions/cache/save")]
    assert saved == [f"rag-assay-answers-{NAME}-42-1", f"rag-assay-run-{NAME}-main-42-1"]

    pull_request = start("pull_request", worse(ROWS))
    assert not pull_request.run()
    assert pull_request.outputs["check"] == {"outcome": "failed"}
    files = Path(pull_request.outputs["prepare"]["files"])
    assert {path.name for path in files.iterdir()} == {"comparison.md", "comparison.html", "gate.xml", "report.html"}
    assert ET.fromstring((files / "gate.xml").read_bytes()).get("failures") == "1"
    assert api.asked == [
        ("GET", "/repos/owner/answers/issues/7/comments?per_page=100"),
        ("PATCH", "/repos/owner/answers/issues/comments/3"),
    ]
    body = api.received[-1]["body"]
    assert body.startswith(f"<!-- rag-assay: {NAME} -->\n\n### \u274c rag-assay: {NAME}: failed")
    assert "## Comparison of two runs" in body
    assert "https://github.example/owner/answers/actions/runs/42" in body
    assert "failed" in (pull_request.root / "summary.md").read_text(encoding="utf-8")
    assert pull_request.used[-1][0].startswith("actions/upload-artifact")


@pytest.mark.served
def test_a_pull_request_without_a_baseline_fails_unless_it_need_not_have_one(start: Start, api: JsonEndpoint) -> None:
    strict = start("pull_request")
    copy_instead_of_evaluating(strict, write_run(strict.root / "finished", 0.5))
    assert not strict.run()
    body = api.received[-1]["body"]
    assert "There is no earlier run to compare with" in body
    assert "--without-baseline leaves such rules out" in " ".join(body.split())
    lenient = start("pull_request", require_baseline="false")
    assert lenient.run(), lenient.log
    assert lenient.outputs["check"]["outcome"] == "passed"
    plain = start("pull_request", gate="")
    assert plain.run(), plain.log
    assert plain.outputs["check"]["outcome"] == "compared"


@pytest.mark.served
def test_no_text_of_the_data_is_a_command_of_the_workflow(start: Start) -> None:
    attack = "a\n::error::bought\n::stop-commands::mine\r::set-output name=outcome::passed\n##[add-mask]x\n"
    baseline = start("push")
    copy_instead_of_evaluating(baseline, write_run(baseline.root / "finished", 0.5, attack, source=attack))
    assert baseline.run(), baseline.log
    worse_run = start("pull_request")
    copy_instead_of_evaluating(worse_run, write_run(worse_run.root / "worse", 0.1, source=f"b{attack}"))
    assert not worse_run.run()
    assert "::error::bought" in worse_run.log
    notice = "::notice::There is no earlier run to compare with: a run of this workflow on the base branch becomes the"
    assert [command[: len(notice)] for command in baseline.commands()] == [notice]
    assert worse_run.commands() == ["::error::failed: assay compare ended with exit code 10"]
    assert worse_run.outputs["check"] == {"outcome": "failed"}


@pytest.mark.served
def test_no_argument_of_an_evaluation_is_a_command_of_the_workflow(start: Start) -> None:
    failing = start("pull_request", config="none\n::error::bought\n.jsonl")
    assert not failing.run()
    assert "::error::bought" in failing.log
    assert failing.commands() == ["::error::assay run ended with exit code 3"]


@pytest.mark.served
@pytest.mark.prefect
def test_an_evaluation_that_fails_replaces_the_old_comment_with_its_error(start: Start, api: JsonEndpoint) -> None:
    failing = start("pull_request", arguments="--metrics faithfulnes")
    assert not failing.run()
    body = api.received[-1]["body"]
    assert f"rag-assay: {NAME}: error" in body
    assert "Did you mean" in " ".join(body.split())
    assert "check" not in failing.outputs


@pytest.mark.served
def test_a_name_that_is_no_name_ends_the_action_first(start: Start) -> None:
    named = start("push", name="a/../b; rm -rf x")
    assert not named.run()
    assert "letters, digits, dots" in named.log
    assert [action for action, _ in named.used] == ["actions/setup-python@v5"]


def test_the_action_has_the_form_that_github_documents() -> None:
    command = [sys.executable, "-m", "check_jsonschema", "--builtin-schema", "vendor.github-actions"]
    done = subprocess.run([*command, str(FOLDER / "action.yml")], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout


def test_every_input_is_described_and_used_and_every_script_is_part_of_a_step() -> None:
    text = (FOLDER / "action.yml").read_text(encoding="utf-8")
    for name, entry in ACTION["inputs"].items():
        assert entry["description"].endswith((".", "`.")), name
        assert f"inputs.{name}" in text
    scripts = {path.name for path in FOLDER.iterdir() if path.suffix in {".sh", ".py"}} - {"__init__.py"}
    assert {script for script in scripts if f"$GITHUB_ACTION_PATH/{script}" in text} == scripts
    assert shutil.which("bash")
