"""The commands and options in the documentation exist."""

import re
from typing import Any

from typer.main import get_command

from deployments.cli._support.verb_table import ListedVerb
from deployments.cli.main import app
from tests.structure.house import ROOT

PAGES = (
    "README.md",
    "CONTRIBUTING.md",
    *(str(path.relative_to(ROOT)) for path in sorted((ROOT / "docs").rglob("*.md"))),
)
_CALL = re.compile(r"(?:^|[`$(]|/bin/|&& |\| )\s?assay ((?:[^`\n\\|&;#]|\\\n)+)", re.MULTILINE)
_OPTION = re.compile(r"(?<![\w-])(--[a-z][a-z-]*|-[a-z])(?![\w-])")


def calls(page: str) -> list[str]:
    """Return the arguments of `assay` wherever it is called in code."""
    text = (ROOT / page).read_text(encoding="utf-8")
    code = re.findall(r"^```(?:bash|console)?\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    prose = re.sub(r"^```.*?^```$", "", text, flags=re.MULTILINE | re.DOTALL)
    code += [f"`{inline}`" for inline in re.findall(r"`([^`\n]+)`", prose)]
    return [call.strip() for block in code for call in _CALL.findall(block)]


def test_every_documented_command_exists() -> None:
    for page in PAGES:
        missing = []
        for call in calls(page):
            words = call.removesuffix(')"').replace("[", " ").replace("]", " ").split()  # as in eval "$(assay ...)"
            command: Any = get_command(app)
            while words and getattr(command, "commands", None) and not words[0].startswith("-"):
                names = words.pop(0).split("|")
                found = [command.commands.get(name) for name in names]
                if None in found:
                    missing.append(f"assay {call}: no {'|'.join(names)}")
                    break
                command = found[0].load() if isinstance(found[0], ListedVerb) else found[0]
            else:
                known = {option for parameter in command.params for option in parameter.opts + parameter.secondary_opts}
                known |= {"--help", "-h", "--install-completion"}
                missing += [f"assay {call}: {option}" for option in _OPTION.findall(call) if option not in known]
        assert missing == [], page
