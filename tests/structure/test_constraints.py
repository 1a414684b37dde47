"""The pinned dependencies are those of pyproject.toml."""

import re
import tomllib

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from tests.structure.house import ROOT

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
EXTRAS = PROJECT["optional-dependencies"]


def blocks(file: str) -> list[str]:
    """Return the pins of a file, each with its hashes."""
    text = (ROOT / "constraints" / file).read_text(encoding="utf-8")
    return re.findall(r"^\w(?:.*\\\n)*.*$", text, re.MULTILINE)


@pytest.mark.parametrize(
    ("file", "declared"),
    [
        ("run.txt", PROJECT["dependencies"]),
        ("container.txt", [*PROJECT["dependencies"], *EXTRAS["container"], *EXTRAS["postgres"], *EXTRAS["s3"]]),
        ("dev.txt", [*PROJECT["dependencies"], *EXTRAS["browser"], *EXTRAS["test"], *EXTRAS["dev"]]),
    ],
)
def test_every_dependency_is_pinned_within_its_range(file: str, declared: list[str]) -> None:
    pins = [re.match(r"([\w.-]+)(?:\[.*?\])?==([^\s;]+)", block) for block in blocks(file)]
    pinned = [(canonicalize_name(pin.group(1)), pin.group(2)) for pin in pins if pin]
    for requirement in map(Requirement, declared):
        name = canonicalize_name(requirement.name)
        versions = [version for other, version in pinned if other == name]
        assert versions or name == "rag-assay", f"{name} is missing from constraints/{file}: run `just lock`"
        assert all(requirement.specifier.contains(version) for version in versions), f"{name}: run `just lock`"


@pytest.mark.parametrize("file", ["run.txt", "container.txt", "dev.txt"])
def test_every_pin_has_its_hashes(file: str) -> None:
    found = blocks(file)
    assert found
    assert [block for block in found if not re.search(r"--hash=sha256:[0-9a-f]{64}", block)] == []
