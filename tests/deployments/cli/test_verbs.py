"""The verbs that need no server: metrics, plan, init; and messages about mistakes."""

import json
import os
import re
import subprocess
import sys
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from deployments.cli._support.verb_table import VERBS, Verbs
from deployments.cli.main import main
from metric_core.metrics.registry import METRICS
from tests.deployments.cli.conftest import Outcome
from tests.structure.house import ROOT

Assay = Callable[..., Outcome]
EXAMPLE = "examples/handbook.jsonl"
PRINTS_MODULES = """
import atexit, sys
from deployments.cli.main import main
sys.argv[0] = "assay"
atexit.register(lambda: print(*sys.modules, file=sys.stderr))
main()
"""


def all_verbs() -> dict[str, Any]:
    group = Verbs(name="assay")
    group.add_installed()
    return dict(group.commands)


def test_help_lists_every_verb(assay: Assay) -> None:
    shown = assay("--help").out
    headings = [
        shown.index(f"\n{heading}:") for heading in ("Evaluate", "Look", "People", "Schedule", "Servers and storage")
    ]
    assert headings == sorted(headings)
    assert all(f"\n  {verb} " in shown for verb in ("run", "plan", "metrics", "init", "server"))


def test_the_table_lists_the_verbs_in_order_with_the_first_sentence_of_their_help() -> None:
    modules = {path.stem for path in (ROOT / "deployments" / "cli").glob("*.py")} - {"__init__", "main"}
    assert modules == {name.replace("-", "_") for verbs in VERBS.values() for name in verbs}
    for name, verb in all_verbs().items():
        assert (name, verb.get_short_help_str(200)) == (name, verb.load().get_short_help_str(200))


@pytest.mark.parametrize(
    ("arguments", "environment"),
    [
        (("--help",), {}),
        (("--version",), {}),
        ((), {"_ASSAY_COMPLETE": "complete_bash", "COMP_WORDS": "assay ", "COMP_CWORD": "1"}),
    ],
)
def test_a_command_without_a_verb_imports_none(arguments: tuple[str, ...], environment: dict[str, str]) -> None:
    done = subprocess.run(
        [sys.executable, "-c", PRINTS_MODULES, *arguments],
        cwd=ROOT,
        env=os.environ | environment,
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout
    imported = set(done.stderr.split())
    assert "deployments.cli.main" in imported
    assert not imported & {f"deployments.cli.{name.replace('-', '_')}" for verbs in VERBS.values() for name in verbs}
    assert not {name for name in imported if name.startswith("deployments.") and name.endswith("_verb")}


GREETINGS = {
    "greet": ('InstalledVerb("Say hello.", "greeting:app", heading="Look")', "Say hello.", ""),
    "count": ("1", "Cannot be loaded", "the verb count is 1, wanted an InstalledVerb"),
    "miss": ("__import__('no_such_module')", "Cannot be loaded", "needs the module 'no_such_module'"),
    "call": ('InstalledVerb("Say hello.", "greeting:hello")', "Say hello.", "wanted a typer.Typer"),
}
"""Verb -> what its package gives for it, how it is listed, and the reason why it is refused."""


def test_an_installed_package_brings_verbs(tmp_path: Path) -> None:
    package = tmp_path / "greeting-1.0.dist-info"
    package.mkdir()
    (package / "METADATA").write_text("Metadata-Version: 2.1\nName: greeting\nVersion: 1.0\n", encoding="utf-8")
    points = "".join(f"{verb} = greeting_{verb}:VERB\n" for verb in GREETINGS)
    written = f"[rag_assay.verbs]\n{points}run = greeting_greet:VERB\n"
    (package / "entry_points.txt").write_text(written, encoding="utf-8")
    for name, (content, _, _) in GREETINGS.items():
        door = f"from rag_assay.plugins import InstalledVerb\nVERB = {content}\n"
        (tmp_path / f"greeting_{name}.py").write_text(door, encoding="utf-8")
    verb = "import typer\napp = typer.Typer()\n@app.command()\ndef hello() -> None:\n    print('good morning')\n"
    (tmp_path / "greeting.py").write_text(verb, encoding="utf-8")

    def assay(*arguments: str) -> subprocess.CompletedProcess[str]:
        code = "from deployments.cli.main import main; main()"
        environment = os.environ | {"PYTHONPATH": os.pathsep.join([str(tmp_path), str(ROOT / "deployments/public")])}
        command = [sys.executable, "-c", code, *arguments]
        return subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)

    listed = [line.split(maxsplit=1) for line in assay("--help").stdout.splitlines() if line.startswith("  ")]
    for name, (_, text, refusal) in GREETINGS.items():
        assert [name, text] in [[words[0], words[-1][: len(text)]] for words in listed]
        called = assay(name)
        if refusal:
            assert (called.returncode, refusal in called.stderr) == (2, True)
        else:
            assert (called.returncode, called.stdout) == (0, "good morning\n")
    assert "Evaluate a source" in assay("run", "--help").stdout  # a verb of the table is not replaced


def test_every_option_of_run_names_its_environment_variable(assay: Assay) -> None:
    shown = " ".join(assay("run", "--help-all").out.split())
    assert all(name in shown for name in ("ASSAY_METRICS", "ASSAY_OUT", "ASSAY_LIMIT", "ASSAY_ON_BAD_ROW"))


@pytest.mark.parametrize(
    ("words", "completed"),
    [
        (("comp",), ["compare"]),
        (("compare", "--ga"), ["--gate"]),
        (("metrics", "noi"), ["noise_sensitivity"]),
        (("run", "x", "--metrics", "faithfulness,noi"), ["faithfulness,noise_sensitivity"]),
    ],
)
def test_a_shell_completes(
    assay: Assay, monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...], completed: list[str]
) -> None:
    monkeypatch.setenv("_ASSAY_COMPLETE", "complete_bash")
    monkeypatch.setenv("COMP_WORDS", " ".join(("assay", *words)))
    monkeypatch.setenv("COMP_CWORD", str(len(words)))
    assert assay().out.split() == completed


def test_the_second_name_of_the_command_completes_and_shows_itself(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["rag-assay", "run", "--help"])
    with pytest.raises(SystemExit):
        main()
    assert capsys.readouterr().out.startswith("Usage: rag-assay run ")
    for name, value in {
        "_RAG_ASSAY_COMPLETE": "complete_bash",
        "COMP_WORDS": "rag-assay comp",
        "COMP_CWORD": "1",
    }.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(sys, "argv", ["rag-assay"])
    with pytest.raises(SystemExit):
        main()
    assert capsys.readouterr().out.split() == ["compare"]


def test_every_summary_of_a_verb_fits_a_narrow_terminal(assay: Assay, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    assert "..." not in assay("--help").out.partition("Evaluate:")[2]


def test_help_begins_with_five_options_and_shows_the_others_on_request(assay: Assay) -> None:
    short, everything = assay("run", "--help").out, assay("run", "--help-all").out
    first = ["--metrics", "--judge", "--limit", "--column-map", "--out"]
    flags = re.findall(r"^  (?:-\w, )?(--[\w-]+)", short, re.MULTILINE)
    assert flags == [*first, "--json", "--verbose", "--example", "--help-all", "--help"]
    places = [everything.index(f"\n{heading}:") for heading in ("Start here", "Options", "Data", "Scores")]
    assert places == sorted(places)
    headings = re.split(r"\n(?=[A-Z][a-z ]+:\n)", everything)
    found = {each.partition(":")[0]: each for each in headings}
    assert "--config" in found["Data"]
    assert "--model " in found["Models and cost"]
    assert "--slice" in found["Scores"] + found["Results and history"]


def test_version_is_printed(assay: Assay) -> None:
    assert assay("--version").out.startswith("rag-assay ")


def test_metrics_lists_the_registry(assay: Assay) -> None:
    listed = json.loads(assay("metrics", "--json").out)
    assert [entry["name"] for entry in listed] == list(METRICS)
    assert next(entry for entry in listed if entry["name"] == "noise_sensitivity")["direction"] == "lower"
    table = assay("metrics").out
    assert all(name in table for name in METRICS)


def test_metric_is_described_by_any_of_its_names(assay: Assay) -> None:
    shown = assay("metrics", "semantic_similarity").out
    assert "answer_similarity" in shown
    assert "threshold" in shown
    assert "zero embedding vector" in shown


def test_an_unknown_metric_is_a_message_with_the_nearest_name(assay: Assay) -> None:
    outcome = assay("metrics", "faithfullness")
    assert (outcome.code, outcome.out) == (2, "")
    assert "Did you mean faithfulness" in outcome.err
    assert "Traceback" not in outcome.err


def test_plan_shows_each_product_once_with_its_users(assay: Assay) -> None:
    shown = json.loads(assay("plan", EXAMPLE, "--metrics", "faithfulness,noise_sensitivity", "--json").out)
    stages = {stage["stage"]: stage["products"] for stage in shown["stages"]}
    assert stages["claims"]["response claims"] == ["faithfulness", "noise_sensitivity"]
    assert "questions" not in stages
    counts = {stage["stage"]: stage["rows"] for stage in shown["stages"] if "rows" in stage}
    assert {sum(rows.values()) for rows in counts.values()} == {shown["rows"]}
    assert {"claims", "verdicts"} <= set(counts)
    assert "response claims" in assay("plan", EXAMPLE).out


def test_plan_lists_omitted_metrics(assay: Assay) -> None:
    assert json.loads(assay("plan", EXAMPLE, "--json").out)["left_out"]["instance_rubrics"] == ["rubrics"]


def test_plan_says_that_contexts_come_first(assay: Assay, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ASSAY_HOME", str(tmp_path))
    monkeypatch.setenv("ASSAY_RETRIEVER", "tests.tasks.sources.retrievers.own_index:Halls")
    call = ("plan", EXAMPLE, "--limit", "3", "--metrics", "context_relevancy")
    said = assay(*call)
    assert said.code == 0
    assert "Retrieval comes first: the run fetches the contexts of 3 rows from halls 1" in said.out
    assert "would be asked" not in said.out
    fetched = json.loads(assay(*call, "--fetch", "--json").out)
    assert (fetched["contexts"]["rows"], fetched["judge"]["certainty"]) == (3, "estimated")
    assert "for the contexts fetched on" in assay(*call).out


def test_a_missing_file_is_exit_code_3_with_the_nearest_file(assay: Assay) -> None:
    outcome = assay("plan", "examples/handbok.jsonl")
    assert outcome.code == 3
    assert "handbook.jsonl" in outcome.err


def test_nothing_to_evaluate_is_exit_code_2(assay: Assay) -> None:
    outcome = assay("plan")
    assert (outcome.code, "name a source" in outcome.err) == (2, True)


def test_two_configurations_are_refused(assay: Assay, tmp_path: Path) -> None:
    outcome = assay("plan", str(tmp_path / "a.toml"), "--config", str(tmp_path / "b.toml"))
    assert (outcome.code, "two configuration files" in outcome.err) == (2, True)


def test_init_writes_a_configuration_that_plan_accepts(assay: Assay, tmp_path: Path) -> None:
    target = tmp_path / "assay.toml"
    assert assay("init", EXAMPLE, "--out", str(target)).code == 0
    assert "faithfulness" in tomllib.loads(target.read_text())["metrics"]
    assert assay("plan", str(target)).code == 0


def test_init_replaces_a_file_only_on_request(assay: Assay, tmp_path: Path) -> None:
    target = tmp_path / "assay.toml"
    target.write_text("mine", encoding="utf-8")
    assert assay("init", EXAMPLE, "--out", str(target)).code == 2
    assert target.read_text() == "mine"
    assert assay("init", EXAMPLE, "--out", str(target), "--force").code == 0


@pytest.mark.parametrize("verb", ["run", "plan"])
def test_invalid_option_is_named(assay: Assay, verb: str) -> None:
    outcome = assay(verb, EXAMPLE, "--on-bad-row", "ignore")
    assert outcome.code == 2
    assert "on_bad_row" in outcome.err


FORM = """
import typer
from rag_assay.plugins import InstalledVerb
FORM = InstalledVerb("With --louder: count metrics.", "house_form:app")
app = typer.Typer()
@app.command()
def metrics(names: list[str], louder: bool = typer.Option(False, "--louder"), most: int = typer.Option(1, "--most")):
    print(len(names), louder, most)
"""


def test_an_installed_package_brings_a_form_for_arguments_that_a_verb_does_not_take(tmp_path: Path) -> None:
    package = tmp_path / "house-1.0.dist-info"
    package.mkdir()
    (package / "METADATA").write_text("Metadata-Version: 2.1\nName: house\nVersion: 1.0\n", encoding="utf-8")
    points = "[rag_assay.verb_forms]\nmetrics = house_form:FORM\n"
    (package / "entry_points.txt").write_text(points, encoding="utf-8")
    (tmp_path / "house_form.py").write_text(FORM, encoding="utf-8")

    def assay(*arguments: str) -> subprocess.CompletedProcess[str]:
        code = "from deployments.cli.main import main; main()"
        environment = os.environ | {"PYTHONPATH": os.pathsep.join([str(tmp_path), str(ROOT / "deployments/public")])}
        command = [sys.executable, "-c", code, "metrics", *arguments]
        return subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)

    assert "faithfulness" in assay("faithfulness").stdout
    assert assay("faithfulness", "recall", "precision").stdout == "3 False 1\n"
    assert assay("faithfulness", "--louder").stdout == "1 True 1\n"
    assert "With --louder: count metrics." in assay("--help").stdout
    for arguments, message in (
        (("faithfulness", "--loudest"), "No such option: --loudest"),
        (("a", "b", "--most", "x"), "Invalid value for '--most'"),
    ):
        refused = assay(*arguments)
        assert (refused.returncode, message in refused.stderr) == (2, True), refused.stderr
