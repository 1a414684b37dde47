"""Calibrations: how far a judge agreed with people on labelled rows, as a file, and which of them covers a run.

A calibration holds for the judge that it was made with: its model, its prompts and everything else that determines its
answers are one digest, the identity. Kept ones lie in ASSAY_HOME/calibrations, one a metric and identity.
"""

import hashlib
import json
import re
from collections.abc import Iterable
from dataclasses import asdict
from datetime import datetime
from pathlib import Path
from typing import Any

from pydantic import Field, ValidationError

from metric_core.calibration.judge_error import JudgeError
from metric_core.calibration.labels import Scale
from metric_core.errors import ConfigError, RunFolderError
from tasks.options.model_options import Settings
from tasks.runs import run_folder
from tasks.runtime.home import assay_home

FORMAT = 1
FOLDER = "calibrations"


class JudgeName(Settings):
    """Who judged, for people; the identity says it for machines."""

    backend: str
    model: str
    revision: str

    def __str__(self) -> str:
        """Model and revision."""
        return " ".join(filter(None, (self.model, self.revision)))


class KeptFigure(Settings):
    """A figure and its 95 % interval."""

    value: float
    low: float | None = None
    high: float | None = None


class KeptConfusion(Settings):
    """How often people and the judge said yes and no."""

    both: int
    judge_only: int
    people_only: int
    neither: int


class KeptMap(Settings):
    """The fitted map of the judge's probabilities."""

    slope: float
    intercept: float


class MetricMap(Settings):
    """What a calibration makes of the judge's probabilities, for one metric.

    Args:
        metric: its key.
        slope: of the map.
        intercept: of the map.
    """

    metric: str
    slope: float
    intercept: float


class Counts(Settings):
    """How many rows a calibration rests on.

    Args:
        rows: evaluated rows.
        unlabelled: of these, rows without a label.
        undefined: labelled rows with nothing to measure.
        failed: labelled rows for which the judge gave nothing usable.
        compared: labelled rows with a score.
        positive: of these, rows whose label is yes; None for grades.
    """

    rows: int
    unlabelled: int
    undefined: int
    failed: int
    compared: int
    positive: int | None = None


class Calibration(Settings):
    """How far a judge agreed with people.

    Args:
        format: of the file.
        created: when it was made.
        identity: digest of all that determines the metric's tables: judge, prompts, sampling, models, code.
        judge: who judged.
        metric: key of the metric.
        name: its name.
        parameters: its parameters.
        verdict: how verdicts counted in the scores.
        source: the labelled data.
        data: digest of its rows and labels.
        label: the column with the labels.
        positive: the label that means yes, where one was named.
        scale: yes or no, or grades.
        span: the lowest and the highest grade; None for yes and no.
        counts: how many rows it rests on.
        figures: by name.
        best: at the best threshold, out of sample.
        middle: at the middle of the metric's range.
        map: of the judge's probabilities; None where it gives none.
        error: how the judge errs; None where the rows do not tell.
        seed: where drawing rows started.
        warnings: what a reader should know.
        versions: of what it was made with.
    """

    format: int = FORMAT
    created: str
    identity: str
    judge: JudgeName
    metric: str
    name: str
    parameters: dict[str, Any]
    verdict: str
    source: str
    data: str
    label: str
    positive: str | None = None
    scale: Scale
    span: tuple[float, float] | None = None
    counts: Counts
    figures: dict[str, KeptFigure]
    best: KeptConfusion | None = None
    middle: KeptConfusion | None = None
    map: KeptMap | None = None
    error: JudgeError | None = None
    seed: int
    warnings: tuple[str, ...] = ()
    versions: dict[str, str] = Field(default_factory=dict)

    def metric_map(self, key: str) -> MetricMap | None:
        """Its map, for a metric under this key."""
        return None if self.map is None else MetricMap(metric=key, slope=self.map.slope, intercept=self.map.intercept)

    def facts(self, verdict: str, applied: bool) -> dict[str, Any]:
        """What a run tells of it.

        Args:
            verdict: how verdicts count in the run; with the judge's error come only scores made in the same way.
            applied: whether the run maps the judge's probabilities by it.
        """
        is_alike = verdict == self.verdict and not applied
        return {
            "created": self.created,
            "source": self.source,
            "label": self.label,
            "span": self.span,
            "verdict": self.verdict,
            "compared": self.counts.compared,
            "figures": {name: figure.model_dump() for name, figure in self.figures.items()},
            "error": asdict(self.error) if self.error is not None and is_alike else None,
            "applied": applied,
        }


def save(calibration: Calibration, path: Path) -> Path:
    """Writes a calibration, whole or not at all.

    Raises:
        RunFolderError: the file can not be written.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        run_folder.write_json(path, calibration.model_dump(mode="json"))
    except OSError as error:
        raise RunFolderError(f"the calibration {path} can not be written: {error.strerror or error}") from error
    return path


def load(path: Path) -> Calibration:
    """A calibration from its file.

    Raises:
        ConfigError: there is none, or it can not be used.
    """
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
        found = Calibration.model_validate(content)
    except FileNotFoundError as error:
        raise ConfigError(f"there is no calibration {path}. `assay calibrate` makes one.") from error
    except (OSError, ValueError, ValidationError) as error:
        raise ConfigError(f"the calibration {path} can not be used; make it anew with `assay calibrate`") from error
    if found.format != FORMAT:
        raise ConfigError(f"the calibration {path} has format {found.format}, this rag-assay reads {FORMAT}")
    return found


def save_latest(calibration: Calibration) -> Path:
    """Keeps a calibration for the runs of this machine; one of the same metric and identity is replaced."""
    return save(calibration, _path(calibration.judge, calibration.metric, calibration.identity))


def load_latest() -> list[Calibration]:
    """Every kept calibration that can be read, the newest first."""
    found = []
    for path in (assay_home() / FOLDER).glob("*/*.json"):
        try:
            found.append(load(path))
        except ConfigError:
            continue
    return sorted(found, key=lambda calibration: calibration.created, reverse=True)


def describe_mismatch(calibration: Calibration, judge: JudgeName) -> str | None:
    """Why a calibration with another identity does not hold for a judge; None where the model is another altogether."""
    if (calibration.judge.backend, calibration.judge.model) != (judge.backend, judge.model):
        return None
    if calibration.judge.revision != judge.revision:
        return f"of revision {calibration.judge.revision or 'unknown'}, not {judge.revision or 'unknown'}"
    return "of other prompts, sampling, models or code"


def digest_rows(rows: Iterable[Any]) -> str:
    """Digest of rows, whatever JSON can hold."""
    digest = hashlib.sha256()
    for row in rows:
        digest.update(json.dumps(row, sort_keys=True, default=str).encode() + b"\n")
    return digest.hexdigest()


def format_day(created: str) -> str:
    """The day of a moment.

    >>> format_day("2026-11-21T16:04:00+00:00")
    '2026-11-21'
    """
    return datetime.fromisoformat(created).date().isoformat()


def _path(judge: JudgeName, metric: str, identity: str) -> Path:
    folder = re.sub(r"[^\w.]+", "-", f"{judge.backend}-{judge.model}").strip("-")
    name = re.sub(r"[^\w.]+", "-", metric).strip("-")
    return assay_home() / FOLDER / folder[:80] / f"{name[:80]}-{identity[:16]}.json"
