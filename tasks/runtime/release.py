"""Find the version of rag-assay, which names the commit: `0.1.0.dev0+g3f8d3c4a1`.

The build backend evaluates `version_of_source()` when it builds a distribution, so this module imports nothing else of
rag-assay. An editable installation and a checkout ask git at run time: their commit changes without a build.
"""

import os
import subprocess
from functools import cache
from importlib.metadata import PackageNotFoundError
from importlib.metadata import version as version_of
from pathlib import Path

RELEASE = "0.1.0"
"""The release that is being worked on: the version of the commit with its tag."""

DEVELOPMENT = f"{RELEASE}.dev0"
"""Beginning of the version of any other commit, which is older than the release."""

UNKNOWN = f"{DEVELOPMENT}+unknown"
"""Version of a source without git, such as a copied folder."""

COMMIT = "RAG_ASSAY_COMMIT"
"""Variable that names the commit of a source without git, for builds of container images."""

_ARCHIVED = "$Format:%H$"
"""The commit, where `git archive` made the source, as it makes the archives of GitHub; see .gitattributes."""

_DIGITS = 9
_ROOT = Path(__file__).parents[2]


@cache
def version() -> str:
    """Return the version of the code that runs: of its commit if it is a checkout, else as it was installed."""
    if (found := _version_of_checkout(_ROOT)) is not None:
        return found
    try:
        return version_of("rag-assay")
    except PackageNotFoundError:
        return version_of_source()


def version_of_source(root: Path = _ROOT) -> str:
    """Return the version of a source: a checkout, an archive of one, or files without a known commit.

    A checkout with uncommitted changes is called `dirty`. A commit with the tag of the release, such as `v0.1.0`, is
    the release.
    """
    if (found := _version_of_checkout(root)) is not None:
        return found
    commit = os.environ.get(COMMIT, "") if _ARCHIVED.startswith("$") else _ARCHIVED
    return f"{DEVELOPMENT}+g{commit[:_DIGITS]}" if commit else UNKNOWN


def _version_of_checkout(root: Path) -> str | None:
    """Return the version of a checkout; None if this is not one, or git cannot determine its commit."""
    if not (root / ".git").exists() or not (root / "pyproject.toml").is_file():
        return None
    # The checkout may belong to another user, as in containers, and its settings must not run a program.
    settings = ("-c", "safe.directory=*", "-c", "core.fsmonitor=false")
    options = ("--always", "--dirty", "--tags", f"--match=v{RELEASE}", f"--abbrev={_DIGITS}")
    variables = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}  # those of a hook
    try:
        described = subprocess.run(  # noqa: S603 fixed arguments
            ["git", "--no-optional-locks", *settings, "describe", *options],  # noqa: S607 git is where the user has it
            cwd=root,
            env=variables,
            capture_output=True,
            text=True,
            check=True,
        ).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return None
    name = described.removesuffix("-dirty")
    commit = name.rpartition("-g")[2]  # after the release it follows the tag: v0.1.0-3-g3f8d3c4a1
    version, local = (RELEASE, []) if commit == f"v{RELEASE}" else (DEVELOPMENT, [f"g{commit}"])
    local += ["dirty"] if described != name else []
    return "+".join(filter(None, (version, ".".join(local))))
