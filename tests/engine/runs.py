"""Runs over a few rows, whose tables must be those of the reference."""

import json
import os
import subprocess
import sys
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any, TypeAlias

import pyarrow as pa
import pyarrow.parquet as pq

from flows.config.run_config import RunConfig
from flows.evaluate import run_evaluation
from metric_core.errors import FailedCellsError
from metric_core.stages import Stage
from tasks.models.judges.protocol import Judge
from tasks.runs.run_folder import table_name
from tests.engine.hash_judge import NAME, Control, HashJudge
from tests.engine.reference import Reference, Tables, digest, normalize
from tests.tasks.builders import samples_table

ROOT = Path(__file__).parents[2]
METRICS = (
    *("faithfulness", "answer_relevancy", "context_precision", "context_entity_recall", "answer_similarity"),
    *("noise_sensitivity", "nv_accuracy"),
)
"""Metrics that need every stage."""

Row: TypeAlias = tuple[str, int]
"""A row: its id and the number of its content; rows with equal content have other ids."""


@dataclass(frozen=True)
class Night:
    """A run over some rows.

    Args:
        rows: Rows, in the order of the source.
        shard_rows: Number of rows per shard.
        failing: Contents on which every question fails.
    """

    rows: tuple[Row, ...]
    shard_rows: int = 2
    failing: frozenset[int] = frozenset()


@dataclass
class World:
    """A folder with the source, the stores and the judge of runs.

    Args:
        folder: Path of the folder, which exists.
        metrics: Metrics of the runs.
    """

    folder: Path
    metrics: Sequence[str] = METRICS
    control: Control = field(init=False)
    _runs: int = 0

    def __post_init__(self) -> None:
        judge = self.folder / "judge"
        judge.mkdir(parents=True, exist_ok=True)
        self.control = Control(judge)

    def config(self, night: Night, **options: Any) -> dict[str, Any]:
        """Write the source of a night, and return the configuration of a run over it into a new folder."""
        self._runs += 1
        source = self.folder / "rows.jsonl"
        source.write_text("\n".join(json.dumps({"id": name, **texts(number)}) for name, number in night.rows), "utf-8")
        self.control.fail_on(*map(mark, sorted(night.failing)))
        return {
            "source": str(source),
            "metrics": list(self.metrics),
            "verdict": "binary",
            "explain": "all",
            "judge": {"backend": NAME, "options": {"folder": str(self.control.folder)}},
            "tables": str(self.folder / "tables"),
            "cache": str(self.folder / "answers.db"),
            "shard_rows": night.shard_rows,
            "out": str(self.folder / f"run-{self._runs}"),
        } | options

    def run(self, night: Night, **options: Any) -> Path:
        """Evaluate a night in this process, and return the run folder, also of a run whose cells failed too often."""
        config = RunConfig.model_validate(self.config(night, **options))
        try:
            return Path(run_evaluation(config).folder)
        except FailedCellsError as error:
            return Path(error.folder)

    def start(self, night: Night, environment: Mapping[str, str], **options: Any) -> "Started":
        """Start the command that evaluates a night, in a process group of its own.

        Args:
            night: The night.
            environment: Environment of the process.
            **options: Options of the run.
        """
        config = self.config(night, **options)
        file = self.folder / f"{Path(config['out']).name}.yaml"
        file.write_text(json.dumps(config), encoding="utf-8")
        log = file.with_suffix(".log")
        with log.open("wb") as output:
            process = subprocess.Popen(
                [sys.executable, "-m", "rag_assay", "run", str(file)],
                cwd=ROOT,
                env={**environment, "PYTHONPATH": os.pathsep.join((str(ROOT), environment.get("PYTHONPATH", "")))},
                stdout=output,
                stderr=output,
                start_new_session=True,
            )
        return Started(process, Path(config["out"]), log)


@dataclass(frozen=True)
class Started:
    """A run in a separate process.

    Args:
        process: The process.
        folder: Run folder.
        log: File with what it prints.
    """

    process: "subprocess.Popen[bytes]"
    folder: Path
    log: Path

    def wait(self) -> int:
        """Wait until the process ends, and return its exit code."""
        return self.process.wait()

    def is_computing(self) -> bool:
        """Return whether run.json says that the run has begun; fail if the process has ended before."""
        assert self.process.poll() is None, self.log.read_text(encoding="utf-8")
        return (self.folder / "run.json").exists()


def mark(number: int) -> str:
    """Return the text that all texts of a content contain, and no others."""
    return f"shop {number} "


def texts(number: int) -> dict[str, Any]:
    """Return the texts of a content; some have no earlier turns, no contexts, or no response."""
    name = mark(number).strip()
    return {
        "user_input": f"When does {name} of Dublin open?",
        "response": f"The {name} opens at {number % 12}. Mr. Byrne owns {name} and others."
        if number % 5 != 3
        else None,
        "retrieved_contexts": [f"The {name} opens at {number % 11}.", f"Anna Byrne runs {name} in Dublin."][
            : 2 if number % 4 != 1 else 0
        ],
        "reference": f"The {name} opens at {number % 12}, says Anna Byrne.",
        "earlier_turns": f"user: Is {name} large?" if number % 2 else None,
    }


def samples_of(rows: Iterable[Row]) -> pa.Table:
    """Return the samples table of rows."""
    return samples_table(*({"row_id": name, **texts(number)} for name, number in rows))


def reference_tables(night: Night, metrics: Sequence[str] = METRICS) -> Tables:
    """Return the tables that a run over a night must have, with the samples."""
    parts = [_row_tables(row, row[1] in night.failing, tuple(metrics)) for row in night.rows]
    tables = {stage: pa.concat_tables([part[stage] for part in parts]) for stage in parts[0]}
    return tables | {Stage.SAMPLES: samples_of(night.rows)}


def questions_of(row: Row, metrics: Sequence[str] = METRICS) -> frozenset[str]:
    """Return the digests of the questions about a row whose questions do not fail."""
    return _questions(row[1], tuple(metrics))


@cache
def _row_tables(row: Row, is_failing: bool, metrics: tuple[str, ...]) -> Tables:
    return _reference(is_failing, metrics).tables(samples_of([row]))


@cache
def _questions(number: int, metrics: tuple[str, ...]) -> frozenset[str]:
    return _reference(False, metrics).questions(samples_of([("", number)]))


def _reference(is_failing: bool, metrics: Sequence[str]) -> Reference:
    options = {"metrics": list(metrics), "verdict": "binary", "explain": "all", "judge": {"backend": NAME}}
    judge: Judge = HashJudge(fails=is_failing)
    return Reference(RunConfig.model_validate(options), judge)


def check(run: Path, night: Night, metrics: Sequence[str] = METRICS) -> None:
    """Compare a run folder with the reference: tables to the byte, and the digests of the shards.

    Raises:
        AssertionError: A table differs.
    """
    wanted = reference_tables(night, metrics)
    found = json.loads((run / "run.json").read_text(encoding="utf-8"))["stages"]
    assert found.keys() == {str(stage) for stage in wanted}
    borders = range(0, len(night.rows), night.shard_rows)
    ids = [name for name, _ in night.rows]
    for stage, table in wanted.items():
        is_equal(pq.read_table(run / table_name(stage)), normalize(stage, table), stage)
        shards = [ids[start : start + night.shard_rows] for start in borders]
        assert found[stage]["digests"] == [digest(stage, rows_of(table, shard), shard) for shard in shards], stage


def is_equal(found: pa.Table, wanted: pa.Table, stage: Stage) -> None:
    """Compare two tables of a stage, with their schemas and metadata.

    Raises:
        AssertionError: They differ.
    """
    assert found.schema.equals(wanted.schema, check_metadata=True), stage
    assert found.to_pylist() == wanted.to_pylist(), stage  # names the row that differs
    assert found.equals(wanted), stage


def rows_of(table: pa.Table, ids: Collection[str]) -> pa.Table:
    """Return the rows of a table that belong to samples."""
    return table.filter(pa.array([name in ids for name in table["row_id"].to_pylist()], pa.bool_()))
