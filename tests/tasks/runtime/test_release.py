"""The version names the commit wherever it can be known, and says so where it cannot."""

import importlib.util
import os
import subprocess
import sys
import tarfile
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tasks.runtime import release
from tasks.runtime.release import COMMIT, DEVELOPMENT, RELEASE, UNKNOWN, version_of_source
from tests.structure.house import ROOT

GUIDE, PROMPT = "metric_core/metrics/ndcg.md", "metric_core/prompts/en/system.txt"
IDENTITY = ("-c", "user.name=Tester", "-c", "user.email=tester@example.com", "-c", "init.defaultBranch=main")


def git(folder: Path, *arguments: str) -> str:
    clean = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    command = ["git", *IDENTITY, *arguments]
    return subprocess.run(command, cwd=folder, env=clean, capture_output=True, text=True, check=True).stdout.strip()


@pytest.fixture
def source(tmp_path: Path) -> Path:
    """Return a folder with the files that the version is found by, which is no checkout."""
    folder = tmp_path / "source"
    for name in (".gitattributes", "pyproject.toml", "tasks/runtime/release.py"):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes((ROOT / name).read_bytes())
    return folder


@pytest.fixture
def checkout(source: Path) -> Path:
    """Return a checkout with two commits."""
    git(source, "init", "--quiet")
    git(source, "add", "--all")
    git(source, "commit", "--quiet", "--message=first")
    git(source, "commit", "--quiet", "--allow-empty", "--message=second")
    return source


@pytest.fixture(autouse=True)
def _no_variables(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.delenv(COMMIT, raising=False)
    release.version.cache_clear()
    yield
    release.version.cache_clear()


def commit_of(folder: Path) -> str:
    return f"g{git(folder, 'rev-parse', 'HEAD')[:9]}"


def test_a_checkout_has_its_commit_and_says_if_files_were_changed(checkout: Path) -> None:
    assert version_of_source(checkout) == f"{DEVELOPMENT}+{commit_of(checkout)}"
    (checkout / "pyproject.toml").write_text("", encoding="utf-8")
    assert version_of_source(checkout) == f"{DEVELOPMENT}+{commit_of(checkout)}.dirty"


def test_the_commit_with_the_tag_of_the_release_is_the_release(checkout: Path) -> None:
    git(checkout, "tag", f"v{RELEASE}")
    git(checkout, "tag", "v9")
    assert version_of_source(checkout) == RELEASE
    git(checkout, "commit", "--quiet", "--allow-empty", "--message=third")
    assert version_of_source(checkout) == f"{DEVELOPMENT}+{commit_of(checkout)}"


def test_a_shallow_clone_and_a_worktree_have_their_commit(checkout: Path, tmp_path: Path) -> None:
    git(tmp_path, "clone", "--quiet", "--depth=1", checkout.as_uri(), "shallow")
    git(checkout, "worktree", "add", "--quiet", "--detach", str(tmp_path / "other"), "HEAD~")
    for folder in (tmp_path / "shallow", tmp_path / "other"):
        assert version_of_source(folder) == f"{DEVELOPMENT}+{commit_of(folder)}"


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files to another user")
def test_a_checkout_of_another_user_has_its_commit(checkout: Path) -> None:
    commit = commit_of(checkout)
    for path in (checkout, *checkout.rglob("*")):
        os.chown(path, 12345, 12345)
    with pytest.raises(subprocess.CalledProcessError):
        git(checkout, "status")
    assert version_of_source(checkout) == f"{DEVELOPMENT}+{commit}"


def test_variables_of_a_hook_do_not_lead_to_another_checkout(
    checkout: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "foreign").mkdir()
    git(tmp_path / "foreign", "init", "--quiet")
    monkeypatch.setenv("GIT_DIR", str(tmp_path / "foreign" / ".git"))
    assert version_of_source(checkout) == f"{DEVELOPMENT}+{commit_of(checkout)}"


def test_files_without_a_commit_say_so(source: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert version_of_source(source) == UNKNOWN
    git(source.parent, "init", "--quiet")
    git(source.parent, "add", "--all")
    git(source.parent, "commit", "--quiet", "--message=foreign")
    assert version_of_source(source) == UNKNOWN, "the checkout of something else is not asked"
    git(source, "init", "--quiet")
    assert version_of_source(source) == UNKNOWN, "a repository without a commit"
    monkeypatch.setenv(COMMIT, "3f8d3c4a1" + "0" * 31)
    assert version_of_source(source) == f"{DEVELOPMENT}+g3f8d3c4a1"


def test_without_git_a_checkout_says_that_its_commit_is_unknown(
    checkout: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", "")
    assert version_of_source(checkout) == UNKNOWN


def test_an_archive_that_git_makes_knows_its_commit(checkout: Path, tmp_path: Path) -> None:
    git(checkout, "archive", f"--output={tmp_path / 'source.tar'}", "HEAD")
    with tarfile.open(tmp_path / "source.tar") as archive:
        archive.extractall(tmp_path / "archive", filter="data")
    path = tmp_path / "archive" / "tasks" / "runtime" / "release.py"
    spec = importlib.util.spec_from_file_location("archived_release", path)
    assert spec is not None
    assert spec.loader is not None
    archived = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(archived)
    assert archived.version_of_source() == f"{DEVELOPMENT}+{commit_of(checkout)}"


def test_what_runs_from_a_checkout_has_the_present_commit_and_not_that_of_the_installation(
    checkout: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(release, "_ROOT", checkout)
    monkeypatch.setattr(release, "version_of", lambda _: "0.1.0.dev0+gold")
    assert release.version() == f"{DEVELOPMENT}+{commit_of(checkout)}"
    release.version.cache_clear()
    monkeypatch.setattr(release, "_ROOT", checkout / "tasks")  # as in site-packages
    assert release.version() == "0.1.0.dev0+gold"


def test_distributions_have_the_version_of_their_source(checkout: Path, tmp_path: Path) -> None:
    pytest.importorskip("hatchling", reason="the extra `dev` is not installed: nothing builds a distribution")

    def build(folder: Path, *arguments: str) -> str:
        command = [sys.executable, "-m", "hatchling", *arguments]
        return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=True).stdout.strip()

    for name in ("README.md", "LICENSE", GUIDE, PROMPT):
        (checkout / name).parent.mkdir(parents=True, exist_ok=True)
        (checkout / name).write_bytes((ROOT / name).read_bytes())
    git(checkout, "add", "--all")
    git(checkout, "commit", "--quiet", "--message=third")
    expected = f"{DEVELOPMENT}+{commit_of(checkout)}"
    assert build(checkout, "metadata", "version") == expected
    build(checkout, "build", "-t", "sdist", "-d", str(tmp_path))
    with tarfile.open(tmp_path / f"rag_assay-{expected}.tar.gz") as archive:
        archive.extractall(tmp_path, filter="data")
    unpacked = tmp_path / f"rag_assay-{expected}"
    assert build(unpacked, "metadata", "version") == expected
    build(unpacked, "build", "-t", "wheel", "-d", str(tmp_path))
    with zipfile.ZipFile(tmp_path / f"rag_assay-{expected}-py3-none-any.whl") as wheel:
        assert {GUIDE, PROMPT} <= set(wheel.namelist())
