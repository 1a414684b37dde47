"""Run the steps of the composite action as GitHub does, without those that use other actions."""

import os
import re
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from tests.structure.house import ROOT

FOLDER = ROOT / "deployments" / "github"
ACTION: Mapping[str, Any] = yaml.safe_load((FOLDER / "action.yml").read_text(encoding="utf-8"))

_EXPRESSION = re.compile(r"\$\{\{\s*(.*?)\s*\}\}")


@dataclass
class Workflow:
    """A run of a workflow that uses the action.

    Args:
        root: Folder of the runner.
        inputs: Inputs of the action that are set.
        environment: Environment of the runner.
        github: Values of the context `github`.
    """

    root: Path
    inputs: Mapping[str, str]
    environment: Mapping[str, str]
    github: Mapping[str, str] = field(default_factory=dict)
    outputs: dict[str, dict[str, str]] = field(default_factory=dict)
    outcomes: dict[str, str] = field(default_factory=dict)
    used: list[tuple[str, dict[str, str]]] = field(default_factory=list)
    log: str = ""

    def run(self) -> bool:
        """Run the steps, and return whether all of them succeeded."""
        succeeded = True
        for number, step in enumerate(ACTION["runs"]["steps"]):
            condition = str(step.get("if", "success()"))
            if not succeeded and "always()" not in condition:
                continue
            if not self.evaluate(condition):
                continue
            if "uses" in step:
                self.used.append((step["uses"], {name: self.fill(text) for name, text in step["with"].items()}))
                continue
            name = step.get("id", str(number))
            code = self._execute(step, name)
            self.outcomes[name] = "failure" if code else "success"
            succeeded = succeeded and code == 0
        return succeeded

    def commands(self) -> list[str]:
        """Return the commands in the log that the runner follows; a stopped runner waits for its token."""
        followed, token = [], None
        for line in re.split(r"\r\n|\r|\n", self.log):
            command = line.strip()
            if token is not None:
                token = None if command == f"::{token}::" else token
            elif command.startswith("::stop-commands::"):
                token = command.removeprefix("::stop-commands::")
            elif command.startswith("::") or "##[" in command:
                followed.append(command)
        assert token is None
        return followed

    def fill(self, text: str) -> str:
        """Return a text with its expressions evaluated."""
        return _EXPRESSION.sub(lambda found: str(self.evaluate(found[1])), str(text))

    def evaluate(self, expression: str) -> Any:
        """Evaluate an expression: names, texts, comparisons, `&&`, `||`, `always()` and `success()`."""
        names = {
            **{f"inputs.{name}": self._input(name) for name in ACTION["inputs"]},
            **{f"github.{name}": value for name, value in self.github.items()},
            **{f"steps.{step}.outcome": outcome for step, outcome in self.outcomes.items()},
            **{f"steps.{s}.outputs.{name}": value for s, each in self.outputs.items() for name, value in each.items()},
        }

        def value_of(found: re.Match[str]) -> str:
            return found[0] if found[0].startswith("'") else repr(names.get(found[0], ""))

        python = re.sub(r"'[^']*'|\b(?:inputs|github|steps)(?:\.[\w-]+)+", value_of, expression)
        python = python.replace("&&", " and ").replace("||", " or ")
        python = python.replace("always()", "True").replace("success()", "True")
        return eval(python, {"__builtins__": {}})

    def _input(self, name: str) -> str:
        if name in self.inputs:
            return self.inputs[name]
        default = str(ACTION["inputs"][name].get("default", ""))
        return self.github.get("token", "") if "github.token" in default else default

    def _execute(self, step: Mapping[str, Any], name: str) -> int:
        assert step["shell"] == "bash"
        assert "${{" not in step["run"], "a script that contains inputs can be made to run anything"
        output = self.root / f"output-{name}"
        summary = self.root / "summary.md"
        output.write_text("", encoding="utf-8")
        environment = {
            **self.environment,
            **{key: self.fill(text) for key, text in step.get("env", {}).items()},
            "GITHUB_OUTPUT": str(output),
            "GITHUB_STEP_SUMMARY": str(summary),
            "GITHUB_ACTION_PATH": str(FOLDER),
            "RUNNER_TEMP": str(self.root / "temp"),
        }
        command = ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", step["run"]]
        done = subprocess.run(
            command, cwd=self.root, env=environment, capture_output=True, text=True, check=False, timeout=180
        )
        self.log += done.stdout + done.stderr
        pairs = (line.partition("=") for line in output.read_text(encoding="utf-8").splitlines())
        self.outputs[name] = {key: value for key, _, value in pairs}
        return done.returncode


def runner_environment(root: Path, name: str, **more: str) -> dict[str, str]:
    """Return the environment of a runner on which the action's environment of Python is installed already."""
    import sys

    programs = root / "temp" / "rag-assay" / name / "venv" / "bin"
    programs.mkdir(parents=True)
    entry = "from rag_assay.__main__ import main; main()"
    for program, arguments in (("python", ""), ("assay", f' -c "{entry}"')):
        path = programs / program
        path.write_text(f'#!/bin/bash\nexec "{sys.executable}"{arguments} "$@"\n', encoding="utf-8")
        path.chmod(0o755)
    inherited = {key: value for key, value in os.environ.items() if not key.startswith(("ASSAY_", "GITHUB_"))}
    return {**inherited, "PYTHONPATH": f"{ROOT}:{ROOT / 'deployments' / 'public'}", **more}
