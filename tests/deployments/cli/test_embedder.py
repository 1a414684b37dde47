"""`--embedder`: the packaged model, or a server by its URL."""

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.deployments.cli import test_run
from tests.deployments.cli.conftest import Outcome

Assay = Callable[..., Outcome]


@pytest.mark.prefect
@pytest.mark.models
@pytest.mark.usefixtures("prefect_stub")
def test_unreachable_server_is_one_message_with_the_exit_code_of_a_judge(assay: Assay, tmp_path: Path) -> None:
    options = ("--limit", "2", "-m", "answer_similarity", "--embedder", "http://127.0.0.1:9", "--out", str(tmp_path))
    done = assay("run", str(test_run.EXAMPLE), *options)
    assert done.code == 4
    assert done.out == ""
    assert done.err.startswith("error: the embedding server cannot be used: http://127.0.0.1:9/v1 cannot be reach")
    assert "Traceback" not in done.err


@pytest.mark.parametrize("verb", ["run", "plan"])
def test_a_password_in_its_url_is_refused_and_not_repeated(assay: Assay, verb: str) -> None:
    refused = assay(verb, str(test_run.EXAMPLE), "--embedder", "http://me:hunter2@localhost:8001/v1")
    assert refused.code == 2
    assert "must hold no user, password" in refused.err
    assert "hunter2" not in refused.out + refused.err
