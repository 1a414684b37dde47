"""Write the list of public names to docs/api.md: `python -m tests.structure.public_names`."""

import importlib
import inspect
import re
from types import ModuleType

from tests.structure.house import ROOT

MODULES = (
    "rag_assay",
    "rag_assay.plugins",
    "rag_assay.findings",
    "rag_assay.mlflow",
    "rag_assay.prefect_flows",
    "rag_assay.pytest_plugin",
    "rag_assay.workers",
)
PAGE = ROOT / "docs" / "api.md"
START, END = "<!-- public names: generated -->", "<!-- end of public names -->"
_CONSTANTS = {
    "AssayRun": "Type of the fixture `assay_run`: takes the arguments of `rag_assay.evaluate`, and returns a run.",
    "ALL_CONTEXTS": "Premise of all retrieved contexts together.",
    "BY_REFERENCE": "Premise that is the reference.",
    "BY_RESPONSE": "Premise that is the response.",
    "BY_USER_INPUT": "Premise that is the user question.",
    "Data": "Type of the data that `evaluate` accepts.",
    "GateRules": "Type of a gate: a file, short rules, or the content of a file.",
    "Kind": "Type of the kind of a judge question: a `QuestionKind` or a `CustomKind`.",
    "Parameters": "Type of the parameters of a metric: values by name.",
    "PassageLike": "Type of a passage that a retriever may return: a text, a `Passage` or a mapping.",
    "__version__": "Version of rag-assay.",
}


def public_names() -> dict[str, ModuleType]:
    """Return the public modules by name."""
    return {name: importlib.import_module(name) for name in MODULES}


def summarize(name: str, value: object) -> str:
    """Return a description of a public name in one line."""
    if name in _CONSTANTS:
        return _CONSTANTS[name]
    text = re.split(r"\n\s*\n", inspect.getdoc(value) or "")[0]
    return re.split(r"(?<=\.)\s+(?=[A-Z])|(?<=[^:]):\s*$", " ".join(text.split()))[0].rstrip(":") or name


def render() -> str:
    """Return the generated part of the page."""
    lines: list[str] = []
    for module_name, module in public_names().items():
        heading = (inspect.getdoc(module) or "").splitlines()[0]
        lines += [f"### `{module_name}`", "", heading, "", "| name | |", "|---|---|"]
        lines += [f"| `{name}` | {summarize(name, getattr(module, name))} |" for name in module.__all__]
        lines.append("")
    return "\n".join(lines)


def update(page: str) -> str:
    """Return the text of the page with the generated part replaced."""
    before, _, rest = page.partition(START)
    after = rest.partition(END)[2]
    return f"{before}{START}\n\n{render()}\n{END}{after}"


if __name__ == "__main__":
    PAGE.write_text(update(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
