"""Agree with the processes that compute the shards of a run: on equal versions, and on their shares of the servers.

Results are stored under what the process of the run says determines them, so a process with other code or another model
would store wrong ones.
"""

import os
import platform
import socket
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError
from importlib.metadata import version as version_of
from threading import Lock

from metric_core.errors import ConfigError
from tasks.engine.fingerprint import identities
from tasks.engine.formulas import digest_formulas
from tasks.engine.stage_step import EnginePlan, make_recipe
from tasks.opening.run_models import RunModels
from tasks.runtime.release import version

_PACKAGES = ("numpy", "onnxruntime", "pyarrow", "rapidfuzz", "spacy", "tokenizers", "transformers")
"""Packages whose functions compute results."""

_DIGITS = 12

_ONE_AT_A_TIME = Lock()


@dataclass(frozen=True, slots=True)
class WorkerTerms:
    """Terms of the process of a run for those that compute its shards.

    Args:
        processes: Number of the processes; each has this part of the requests in flight of each server.
        versions: Name of what determines results -> its version in the process of the run.
    """

    processes: int
    versions: dict[str, str]

    @classmethod
    def of_run(cls, plan: EnginePlan, models: RunModels, processes: int) -> "WorkerTerms":
        """Return the terms of the process of a run."""
        return cls(processes, dict(_versions(plan, models)))

    def accept(self, plan: EnginePlan, models: RunModels) -> None:
        """Take this process's share of the servers, once its versions are those of the run.

        Raises:
            ConfigError: A version differs.
        """
        with _ONE_AT_A_TIME:
            if models.processes is not None:
                return
            models.processes = self.processes  # before a model is opened
            try:
                self._compare(dict(_versions(plan, models)))
            except BaseException:
                models.processes = None
                raise

    def _compare(self, here: dict[str, str]) -> None:
        names = [name for name in self.versions | here if self.versions.get(name) != here.get(name)]
        if names:
            listed = "; ".join(f"{name}: {here.get(name)}, the run has {self.versions.get(name)}" for name in names)
            raise ConfigError(
                f"the worker process {os.getpid()} on {socket.gethostname()} would compute other results than the run: "
                f"{listed}. Install the same versions and models there, and start its worker again."
            )


def _versions(plan: EnginePlan, models: RunModels) -> Iterator[tuple[str, str]]:
    """Yield the version of all that determines results; it ends with what is told apart by its digest only."""
    yield "rag-assay", version()
    yield "Python", ".".join(platform.python_version_tuple()[:2])
    for package in _PACKAGES:
        try:
            yield package, version_of(package)
        except PackageNotFoundError:
            continue
    for step in plan.steps.values():
        yield from identities(step.settings, models.select(step.settings))
    yield "code of the formulas", (digest_formulas() or "changed since it was loaded")[:_DIGITS]
    for stage, step in plan.steps.items():
        recipe = make_recipe(stage, step.settings, models, step.reads)
        yield f"models and prompts of the stage {stage}", (recipe or "not told")[:_DIGITS]
