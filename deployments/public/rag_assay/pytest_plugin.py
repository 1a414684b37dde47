"""Plugin of pytest: the fixture `assay_run` evaluates answers for tests, which `assert_gate` checks.

pytest loads this module in every session of an environment with rag-assay, so it imports nothing of the packages until
a test uses the fixture.
"""

import json
import os
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import pytest

if TYPE_CHECKING:
    from deployments.notebook import RunResult

__all__ = ["AssayRun", "assay_run"]

AssayRun: TypeAlias = "Callable[..., RunResult]"
"""Type of the fixture `assay_run`: it takes the arguments of `rag_assay.evaluate`."""

_RUNS = pytest.StashKey[dict[str, tuple["RunResult", object]]]()
"""The runs of the session by their arguments, which are kept beside them."""


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the option for the folder of the runs."""
    group = parser.getgroup("rag-assay")
    group.addoption(
        "--assay-runs",
        metavar="DIR",
        help="Folder for the run folders of the fixture assay_run. Default: the temporary folder of the session.",
    )


@pytest.fixture(scope="session")
def assay_run(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> AssayRun:
    """Return a function that evaluates answers as `rag_assay.evaluate` does, once per session for equal arguments.

    The run folder is in the folder of `--assay-runs`, or in the temporary folder of the session, unless `out` names
    one. The end of the session lists the runs.

        def test_answers_are_faithful(assay_run):
            run = assay_run("answers.jsonl", metrics=["faithfulness"])
            assert_gate(run, ["faithfulness >= 0.8"])
    """
    runs = request.config.stash.setdefault(_RUNS, {})
    folder = _run_folders(request.config, tmp_path_factory)

    def evaluate_once(data: Any, **options: Any) -> "RunResult":
        from rag_assay import evaluate  # noqa: PLC0415 sessions without such tests do not load the packages

        __tracebackhide__ = True
        key = json.dumps([data, options], sort_keys=True, default=_name_object)
        if key not in runs:
            run = evaluate(data, **{"out": str(next(folder)), **options})
            runs[key] = run, (data, options)  # kept, so that no other object gets the name of this one
        return runs[key][0]

    return evaluate_once


def pytest_terminal_summary(terminalreporter: "pytest.TerminalReporter", config: pytest.Config) -> None:
    """List the runs of the session, with the means of their metrics."""
    runs = config.stash.get(_RUNS, {})
    if not runs:
        return
    terminalreporter.section("rag-assay")
    for run, _ in runs.values():
        means = ", ".join(f"{name} {_mean(summary)}" for name, summary in run.summary.items())
        terminalreporter.line(f"{run.folder}: {means}")


def _run_folders(config: pytest.Config, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Yield the folders of the runs; with `--assay-runs`, they are new in each session and worker of pytest-xdist."""
    chosen = config.getoption("--assay-runs")
    if chosen is None:
        parent, prefix = tmp_path_factory.mktemp("assay"), "run"
    else:
        parent = config.invocation_params.dir / chosen
        prefix = "-".join(
            [f"{datetime.now(UTC):%Y%m%d-%H%M%S}", getattr(config, "workerinput", {}).get("workerid", "run")]
        )
    yield from (parent / f"{prefix}-{number}" for number in count(1))


def _mean(summary: Mapping[str, Any]) -> str:
    distribution = summary["distribution"]
    return "-" if distribution is None else f"{distribution['mean']:.3f}"


def _name_object(data: Any) -> str:
    """Return a text for data that JSON cannot hold: a path, or an object, which is equal to itself only."""
    return os.fspath(data) if isinstance(data, os.PathLike) else f"{type(data).__name__} at {id(data)}"
