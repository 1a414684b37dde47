"""Read the conditions by which rows are kept, and say which rows of a run meet them."""

import re
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from operator import ge, gt, le, lt

from metric_core.diagnosis.classes import classes_of
from metric_core.errors import ConfigError
from metric_core.parsing.suggestions import suggest_names
from metric_core.stages import Stage
from tasks.runs.finished_run import FinishedRun
from tasks.runs.run_folder import SCORES, table_name
from tasks.runs.run_tables import read_table

FAILED = "failed"
"""Condition that the system lost the answer, whichever class of the diagnosis says so."""

_TESTS = {"<=": le, ">=": ge, "<": lt, ">": gt}
_OF_METRIC = re.compile(r"(.+?)\s*(<=|>=|<|>)\s*([-+]?[\d.]+(?:e-?\d+)?)")


@dataclass(frozen=True, slots=True)
class Judged:
    """The scores and the diagnosis of a row in a run.

    Args:
        scores: Values of its scored cells by metric.
        diagnosis: Its class of the diagnosis; None if it has none.
        is_lost: True if that class says that the system lost the answer.
    """

    scores: Mapping[str, float]
    diagnosis: str | None = None
    is_lost: bool = False


@dataclass(frozen=True, slots=True)
class Condition:
    """A condition by which rows are kept: `failed`, a class of the diagnosis, or a limit of a metric.

    >>> low = Condition("faithfulness < 0.5")
    >>> low.is_met(Judged({"faithfulness": 0.25})), low.is_bad(Judged({"faithfulness": 0.9})), low.is_bad(Judged({}))
    (True, False, None)
    >>> Condition("contradicted").is_bad(Judged({}, "unsupported", is_lost=True))
    True
    """

    text: str

    @property
    def _limit(self) -> tuple[str, str, float] | None:
        match = _OF_METRIC.fullmatch(self.text.strip())
        return None if match is None else (match[1], match[2], float(match[3]))

    def is_met(self, row: Judged) -> bool:
        """Return whether a row is kept."""
        if self._limit is not None:
            return self.is_bad(row) is True
        return row.is_lost if self.text == FAILED else row.diagnosis == self.text

    def is_bad(self, row: Judged) -> bool | None:
        """Return whether a row that was kept for this is still bad; None if the run does not say.

        One that was kept for its class is good only if the system has not lost the answer in another way.
        """
        if self._limit is None:
            return None if row.diagnosis is None else row.is_lost or row.diagnosis == self.text
        metric, test, limit = self._limit
        value = row.scores.get(metric)
        return None if value is None else bool(_TESTS[test](value, limit))

    def describe(self, row: Judged) -> str:
        """Return what is bad about a row."""
        if self._limit is None:
            return str(row.diagnosis)
        return f"{self._limit[0]} {row.scores[self._limit[0]]:.2f}"

    def check(self, metrics: Collection[str], classes: Collection[str]) -> "Condition":
        """Return the condition, if it is about a metric or a class of a run.

        Raises:
            ConfigError: It is not.
        """
        name, known = (self.text, (FAILED, *classes)) if self._limit is None else (self._limit[0], tuple(metrics))
        if name in known:
            return self
        near = suggest_names(name, known) or known
        wanted = "failed, a class of its diagnosis, or a limit such as 'faithfulness < 0.5'"
        raise ConfigError(f"--where {self.text}: the run has no {name!r}, wanted {wanted}: {', '.join(near)}")


def read_conditions(texts: Iterable[str], run: FinishedRun) -> tuple[Condition, ...]:
    """Return conditions on the rows of a run.

    Raises:
        ConfigError: The run has no such metric or class.
    """
    metrics = {request.key for request in run.requests}
    classes = [each.name for each in classes_of(run.requests) if each.part is not None]
    return tuple(Condition(" ".join(text.split())).check(metrics, classes) for text in texts)


def read_judged(run: FinishedRun) -> dict[str, Judged]:
    """Return what a run says of each of its rows.

    Raises:
        RunFolderError: A table of the run cannot be read.
    """
    scores: dict[str, dict[str, float]] = {}
    for cell in read_table(run.folder, SCORES).select(["row_id", "metric", "value"]).to_pylist():
        found = scores.setdefault(cell["row_id"], {})
        if cell["value"] is not None:
            found[cell["metric"]] = cell["value"]
    lost = {each.name for each in classes_of(run.requests) if each.is_lost}
    diagnoses = read_table(run.folder, table_name(Stage.DIAGNOSIS)).select(["row_id", "diagnosis"]).to_pylist()
    return {
        row["row_id"]: Judged(scores.get(row["row_id"], {}), row["diagnosis"], row["diagnosis"] in lost)
        for row in diagnoses
    }
