"""`rag_assay` finds its packages although modules of the user have their names, and the user's are found too."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.deployments.public.foreign import write_modules, write_package
from tests.structure.house import ROOT

PUBLIC = ROOT / "deployments" / "public"


def run(folder: Path, code: str, *arguments: str, path: str = "") -> str:
    """Run code in a folder, which comes first on the import path, and return what it prints."""
    done = execute(folder, "-c", code, *arguments, path=path)
    assert done.returncode == 0, done.stderr
    return done.stdout


def execute(folder: Path, *command: str, path: str = "") -> subprocess.CompletedProcess[str]:
    """Run Python in a folder, with a checkout behind it on the import path as an editable installation has it."""
    search = os.pathsep.join(filter(None, (path, str(PUBLIC), str(ROOT))))
    return subprocess.run(
        [sys.executable, *command],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": search},
        capture_output=True,
        text=True,
        check=False,
    )


def test_without_the_door_the_users_module_is_in_the_way(tmp_path: Path) -> None:
    done = execute(write_modules(tmp_path), "-c", "import tasks.stages")
    assert "'tasks' is not a package" in done.stderr


def test_importing_the_package_binds_nothing_and_executes_nothing(tmp_path: Path) -> None:
    code = "import rag_assay, sys; print(sorted({'tasks', 'flows', 'deployments', 'metric_core'} & {*sys.modules}))"
    assert run(write_modules(tmp_path), code) == "[]\n"


def test_names_are_found_and_the_users_module_is_not_executed(tmp_path: Path) -> None:
    code = "from rag_assay import evaluate, AssayError; print(evaluate.__module__, AssayError.__module__)"
    assert run(write_modules(tmp_path), code) == "deployments.notebook metric_core.errors\n"


def test_the_users_module_is_found_after_the_package(tmp_path: Path) -> None:
    code = """
from rag_assay import AssayError
from tasks import send_mail
import tasks, flows, tasks.opening.caches
from deployments.mail import ADDRESS
print(send_mail(), ADDRESS, tasks.opening.__name__, flows.send_mail())
"""
    assert run(write_modules(tmp_path), code) == "executed\nexecuted\nPath ops Path Path\n"


def test_the_users_module_stays_what_it_is_if_it_was_imported_before(tmp_path: Path) -> None:
    code = """
import sys
import tasks, deployments.mail
from rag_assay import AssayError
import tasks.opening.caches
print(tasks.send_mail(), tasks.opening.__name__, deployments.mail.ADDRESS, sys.modules["tasks.opening"].__name__)
"""
    assert run(write_modules(tmp_path), code) == "executed\nPath Path ops tasks.opening\n"


def test_the_users_module_may_use_the_package_while_it_is_imported(tmp_path: Path) -> None:
    write_modules(tmp_path)
    text = "from rag_assay import AssayError\n\ndef nightly():\n    return AssayError.__module__\n"
    (tmp_path / "tasks.py").write_text(text, encoding="utf-8")
    assert run(tmp_path, "import tasks; print(tasks.nightly())") == "metric_core.errors\n"


def test_functions_of_the_users_module_can_be_pickled(tmp_path: Path) -> None:
    code = "import pickle, rag_assay.plugins, tasks; print(pickle.loads(pickle.dumps(tasks.send_mail))())"
    assert run(write_modules(tmp_path), code) == "executed\nPath\n"


def test_a_name_that_neither_has_is_missing(tmp_path: Path) -> None:
    code = "import rag_assay.plugins, tasks; tasks.send_mial"
    done = execute(write_modules(tmp_path), "-c", code)
    assert "AttributeError: module 'tasks' has no attribute 'send_mial'" in done.stderr


@pytest.mark.parametrize("first", ["import flows", "pass"])
def test_a_package_with_a_module_of_the_same_name_is_named(tmp_path: Path, first: str) -> None:
    package = write_package(tmp_path, "flows", evaluate="", mine="")
    done = execute(tmp_path, "-c", f"{first}\nfrom rag_assay import AssayError")
    assert f"the package {package} is in the way: it has flows.evaluate, and so does rag-assay" in done.stderr
    assert "flows.mine" not in done.stderr


def test_a_module_named_like_the_core_is_named(tmp_path: Path) -> None:
    (tmp_path / "metric_core.py").write_text("", encoding="utf-8")
    done = execute(tmp_path, "-c", "from rag_assay import AssayError")
    assert f"ImportError: {tmp_path / 'metric_core.py'} is in the way" in done.stderr


def test_a_folder_of_data_with_the_name_of_a_package_is_not_in_the_way(tmp_path: Path) -> None:
    (tmp_path / "flows").mkdir()
    assert run(tmp_path, "from rag_assay import RunTable; print(RunTable.__name__)") == "RunTable\n"


@pytest.mark.parametrize("path", ["", "."])
def test_the_command_line_is_immune(tmp_path: Path, path: str) -> None:
    write_modules(tmp_path)
    write_package(tmp_path / "more", "flows", evaluate="raise SystemExit('executed')")
    for folder in (tmp_path, tmp_path / "more"):
        done = execute(folder, "-m", "rag_assay", "metrics", "faithfulness", path=path)
        assert (done.returncode, done.stdout.splitlines()[0]) == (0, "faithfulness"), done.stderr


def test_a_module_of_the_packages_runs_in_a_process_of_its_own(tmp_path: Path) -> None:
    done = execute(
        write_modules(tmp_path), "-m", "rag_assay._child", "deployments.local_server.server_process", "--help", path="."
    )
    assert done.returncode == 0, done.stderr
    assert "python -m deployments.local_server" in done.stdout
    refused = execute(tmp_path, "-m", "rag_assay._child", "http.server")
    assert (refused.returncode, refused.stdout) == (1, "")
    assert "usage: python -m rag_assay._child MODULE" in refused.stderr


def test_entrypoints_of_deployments_are_found(tmp_path: Path) -> None:
    code = "import rag_assay.prefect_flows as p; print(p.evaluate.name, p.index_rebuilt.name)"
    assert run(write_modules(tmp_path), code, path=".") == "evaluate index-rebuilt\n"
