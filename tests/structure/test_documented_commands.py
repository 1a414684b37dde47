"""The commands, options and configurations in the documentation are valid."""

import re
import tomllib
from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any

import pytest
from pydantic import ValidationError
from typer.main import get_command

from deployments.cli._support.verb_table import ListedVerb, Verbs
from deployments.cli.main import app
from flows.config.run_config import RunConfig
from tests.structure.house import ROOT, files

PAGES = (
    "README.md",
    "CONTRIBUTING.md",
    "examples/README.md",
    *(str(path) for path in files() if path.suffix == ".md" and path.parts[0] in {"benchmarks", "docs"}),
)
OF_OTHER_PROGRAMS = {
    *("--enable-prompt-tokens-details",),  # vLLM
    *("--type", "--with-healthcheck"),  # Prefect
    *("--dist",),  # pytest
    *("--clock", "--no-batch", "--ragas-python", "--years"),  # benchmarks
}
"""Options that pages name without the program that has them."""
OTHER_TABLES = {"project", "form", "absolute", "regression", "axes"}
"""Names at the top of TOML that is no configuration: of a package, a profile of a verifier, a gate, a matrix."""
_CALL = re.compile(r"(?:^|[`$(]|/bin/|&& |\| )\s?assay ((?:[^`\n\\|&;#]|\\\n)+)", re.MULTILINE)
_OPTION = re.compile(r"(?<![\w-])(--[a-z][a-z-]*|-[a-z])(?![\w-])")


def inline_code(page: str) -> list[str]:
    """Return the code in the prose of a page, each on one line."""
    text = (ROOT / page).read_text(encoding="utf-8")
    prose = re.sub(r"^ *```.*?^ *```$", "", text, flags=re.MULTILINE | re.DOTALL)
    return [" ".join(code.split()) for code in re.findall(r"`([^`]+)`", prose)]


def calls(page: str) -> list[str]:
    """Return the arguments of `assay` wherever it is called in code."""
    text = (ROOT / page).read_text(encoding="utf-8")
    code = re.findall(r"^ *```(?:bash|console)?\n(.*?)^ *```$", text, re.MULTILINE | re.DOTALL)
    code += [f"`{inline}`" for inline in inline_code(page)]
    return [call.strip() for block in code for call in _CALL.findall(block)]


@cache
def assay() -> Any:
    """Return the command with all its verbs."""
    command = get_command(app)
    assert isinstance(command, Verbs)
    command.add_installed()
    return command


def options_of(command: Any) -> Iterator[str]:
    """Yield the options of a command, of its further form and of all commands below it."""
    if isinstance(command, ListedVerb):
        if (form := command.load_form()) is not None:
            yield from options_of(form)
        command = command.load()
    for parameter in command.params:
        yield from (*parameter.opts, *parameter.secondary_opts)
    for each in getattr(command, "commands", {}).values():
        yield from options_of(each)


def find_problems(content: Mapping[str, Any]) -> list[Any]:
    """Return what is wrong in a configuration."""
    try:
        RunConfig.model_validate(content)
    except ValidationError as error:
        return [*error.errors()]
    return []


def test_every_documented_command_exists() -> None:
    for page in PAGES:
        missing = []
        for call in calls(page):
            words = call.removesuffix(')"').replace("[", " ").replace("]", " ").split()  # as in eval "$(assay ...)"
            command = listed = assay()
            while words and getattr(command, "commands", None) and not words[0].startswith("-"):
                names = words.pop(0).split("|")
                found = [command.commands.get(name) for name in names]
                if None in found:
                    missing.append(f"assay {call}: no {'|'.join(names)}")
                    break
                listed = found[0]
                command = listed.load() if isinstance(listed, ListedVerb) else listed
            else:
                known = {*options_of(listed), "--help", "-h", "--install-completion"}
                missing += [f"assay {call}: {option}" for option in _OPTION.findall(call) if option not in known]
        assert missing == [], page


def test_every_option_in_prose_exists() -> None:
    known = {*options_of(assay()), "--help", "--install-completion"}
    named = {
        (page, option)
        for page in PAGES
        for code in inline_code(page)
        if code.startswith("--")
        for option in _OPTION.findall(code)
    }
    assert {each for each in named if each[1] not in known | OF_OTHER_PROGRAMS} == set()
    assert {option for _, option in named} >= OF_OTHER_PROGRAMS


def test_every_documented_configuration_is_valid(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT / "examples")  # which has the gate that a page names
    seen = 0
    for page in PAGES:
        text = (ROOT / page).read_text(encoding="utf-8")
        for block in re.findall(r"^ *```toml\n(.*?)^ *```$", text, re.MULTILINE | re.DOTALL):
            content = tomllib.loads(block)
            if content.keys().isdisjoint(OTHER_TABLES):
                problems = find_problems(content)
                assert [each for each in problems if each["type"] != "missing"] == [], page
                seen += 1
    assert seen > 20
