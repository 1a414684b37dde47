"""Store calibrations as files, and find those that cover a run.

A calibration covers runs with the same fingerprint: the digest of the judge's model, its prompts and everything else
that determines its answers. The latest calibration per metric and fingerprint is in ASSAY_HOME/calibrations, in the
folder of its judge; those that it replaced are in a folder of its name beside it, named by their times.
"""

import hashlib
import json
import re
import shutil
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import chain, count
from pathlib import Path
from typing import Any

from pydantic import BaseModel, Field, ValidationError

from metric_core.calibration.judge_error import JudgeErrorFit
from metric_core.calibration.labels import Scale
from metric_core.calibration.platt import ProbabilityMap
from metric_core.calibration.sure_answers import SureAnswers
from metric_core.errors import ConfigError, RunFolderError
from metric_core.parsing.regular_files import regular
from tasks.record.judge_quality import CalibratedMetric
from tasks.record.stored_figures import JudgeName, StoredFigure
from tasks.runtime.atomic_files import create_private_folder, translate_write_errors, write_json
from tasks.runtime.home import assay_home

FORMAT = 1
FOLDER = "calibrations"


@dataclass(frozen=True, slots=True)
class Counts:
    """The numbers of rows that a calibration rests on.

    Args:
        unlabelled: Rows without a label.
        undefined: Labelled rows with nothing to measure.
        failed: Labelled rows for which the judge returned nothing usable.
        compared: Labelled rows with a score.
        positive: Compared rows whose label is yes; None for grades.
    """

    rows: int
    unlabelled: int
    undefined: int
    failed: int
    compared: int
    positive: int | None = None


@dataclass(frozen=True, slots=True)
class JudgeSureness:
    """The cheaper judge of a cascade, with labels of its answers.

    Args:
        name: Name of the judge in its run.
        judge: Digest of the judge's fingerprints.
        writer: Fingerprint of the judge that wrote the claims.
        about: Verdicts, as `describe_verdicts` names them.
        most: Share of answers that people may disagree with, by the configuration of its run.
    """

    name: str
    judge: str
    writer: str
    about: str
    most: float
    answers: SureAnswers


class Calibration(BaseModel, frozen=True, extra="forbid"):
    """The agreement of a judge with people on labelled rows.

    Args:
        format: Version of the file format.
        created: Time of the calibration, in ISO 8601.
        identity: Digest of all that determines the metric's tables: judge, prompts, sampling, models, code.
        metric: Key of the metric.
        verdict: `binary` or `probability`, as verdicts counted in the scores.
        data: Digest of the labelled rows and their labels.
        sample: Run or source that the labelled rows are from.
        look: Number of calibrations of the same judge, metric and sample so far, this one included; limits hold over
            all of them, see `metric_core.calibration.looks`.
        label: Column with the labels.
        positive: Label that means yes, where one was named.
        annotators: Number of labels by the name of who gave them; empty if no names are known.
        scale: Kind of labels: yes or no, or grades.
        span: Lowest and highest grade; None for yes and no.
        figures: Figures by name, see `FIGURES`.
        map: Map of the judge's probabilities; None where the judge returns none.
        error: Error of the judge; None where the rows do not determine it.
        refused: Why scores are not corrected with this calibration although the rows would determine an error; empty if
            they are.
        sure: Labels of the answers of the cheaper judge of a cascade; empty without one.
        warnings: Sentences that a reader should know.
        versions: Mapping from package to the version that was used.
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
    sample: str = ""
    look: int = 1
    label: str
    positive: str | None = None
    annotators: dict[str, int] = Field(default_factory=dict)
    scale: Scale
    span: tuple[float, float] | None = None
    counts: Counts
    figures: dict[str, StoredFigure]
    map: ProbabilityMap | None = None
    error: JudgeErrorFit | None = None
    refused: str = ""
    sure: tuple[JudgeSureness, ...] = ()
    seed: int
    warnings: tuple[str, ...] = ()
    versions: dict[str, str] = Field(default_factory=dict)

    def to_record(self, verdict: str, applied: bool) -> CalibratedMetric:
        """Return what the record of a run says of the calibration.

        Args:
            verdict: `binary` or `probability`, as verdicts count in the run. The judge's error is in the record only
                if it was measured with the same.
            applied: True if the run maps the judge's probabilities with the calibration.
        """
        is_alike = verdict == self.verdict and not applied
        return CalibratedMetric(
            created=self.created,
            source=self.source,
            label=self.label,
            span=self.span,
            verdict=self.verdict,
            compared=self.counts.compared,
            figures=self.figures,
            error=self.error if is_alike else None,
            refused=self.refused if is_alike else "",
            look=self.look,
            applied=applied,
        )


def count_looks(identity: str, metric: str, sample: str, data: str, more: Iterable[Calibration] = ()) -> int:
    """Return the number of a look at a sample of labels: 1 for the first, the same again for the same labels.

    Args:
        identity: Digest of all that determines the metric's tables.
        metric: Key of the metric.
        sample: Run or source that the labelled rows are from.
        data: Digest of the labelled rows and their labels.
        more: Calibrations that may count beside the saved ones.
    """
    known = [
        each
        for each in (*(found.calibration for found in load_saved()), *more)
        if (each.identity, each.metric, each.sample) == (identity, metric, sample)
    ]
    same = [each.look for each in known if each.data == data]
    return max(same) if same else 1 + max((each.look for each in known), default=0)


def save(calibration: Calibration, path: Path) -> Path:
    """Write a calibration atomically and return its path.

    Raises:
        RunFolderError: The file cannot be written.
    """
    with translate_write_errors(f"the calibration {path}", RunFolderError):
        create_private_folder(path.parent)
        write_json(path, calibration.model_dump(mode="json"))
    return path


def load_calibration(path: Path) -> Calibration:
    """Read a calibration.

    Raises:
        ConfigError: The file is missing, damaged, or of another format.
    """
    try:
        content = json.loads(regular(path).read_text(encoding="utf-8"))
        calibration = Calibration.model_validate(content)
    except FileNotFoundError as error:
        raise ConfigError(f"there is no calibration {path}. `assay calibrate` makes one.") from error
    except (OSError, ValueError, ValidationError) as error:
        raise ConfigError(f"the calibration {path} cannot be used; make it again with `assay calibrate`") from error
    if calibration.format != FORMAT:
        raise ConfigError(f"the calibration {path} has format {calibration.format}, this rag-assay reads {FORMAT}")
    return calibration


@dataclass(frozen=True, slots=True)
class SavedCalibration:
    """A calibration in ASSAY_HOME.

    Args:
        is_latest: True if runs use it; False if a later one has replaced it.
    """

    path: Path
    calibration: Calibration
    is_latest: bool


def save_latest(calibration: Calibration, replace: bool = False) -> Path:
    """Save a calibration for later runs on this machine; one of the same metric and fingerprint becomes an earlier one.

    Args:
        replace: True if it may replace one that rests on more labelled rows.

    Raises:
        ConfigError: The saved one rests on more labelled rows.
        RunFolderError: The file cannot be written.
    """
    path = _latest_path(calibration)
    if not replace:
        _refuse_fewer_labels(path, calibration)
    with translate_write_errors(f"the calibration {path}", RunFolderError):
        if path.exists():
            shutil.copy2(path, _earlier_path(path))
    return save(calibration, path)


def _refuse_fewer_labels(path: Path, calibration: Calibration) -> None:
    try:
        saved = load_calibration(path)
    except ConfigError:  # there is none, or none that can be used
        return
    if saved.counts.compared > calibration.counts.compared:
        raise ConfigError(
            f"the calibration of {calibration.metric} was not saved: it rests on {calibration.counts.compared} "
            f"labelled rows of {calibration.source}, and would replace one of the same judge that rests on "
            f"{saved.counts.compared} rows of {saved.source} ({path}). Use --replace to replace it, --no-keep to "
            "measure without saving, or calibrate on the labels of both"
        )


def load_latest() -> list[Calibration]:
    """Return the calibrations of this machine that runs use, newest first."""
    return [found.calibration for found in load_saved() if found.is_latest]


def load_saved() -> list[SavedCalibration]:
    """Return all readable calibrations of this machine, newest first, with those that later ones have replaced."""
    found = []
    for pattern, is_latest in (("*/*.json", True), ("*/*/*.json", False)):
        for path in (assay_home() / FOLDER).glob(pattern):
            with suppress(ConfigError):
                found.append(SavedCalibration(path, load_calibration(path), is_latest))
    return sorted(found, key=lambda each: (each.calibration.created, each.is_latest), reverse=True)


def describe_mismatch(calibration: Calibration, judge: JudgeName) -> str | None:
    """Return why a calibration with another fingerprint does not cover a judge; None for another model."""
    if (calibration.judge.backend, calibration.judge.model) != (judge.backend, judge.model):
        return None
    if calibration.judge.revision != judge.revision:
        return f"of revision {calibration.judge.revision or 'unknown'}, not {judge.revision or 'unknown'}"
    return "of other prompts, sampling, models or code"


def digest_label_rows(rows: Iterable[Any]) -> str:
    """Return the SHA-256 digest of rows, each a value that JSON can hold."""
    digest = hashlib.sha256()
    for row in rows:
        digest.update(json.dumps(row, sort_keys=True, default=str).encode() + b"\n")
    return digest.hexdigest()


def format_date(created: str) -> str:
    """Return the date of an ISO 8601 time.

    >>> format_date("2026-11-21T16:04:00+00:00")
    '2026-11-21'
    """
    return datetime.fromisoformat(created).date().isoformat()


def _latest_path(calibration: Calibration) -> Path:
    judge = calibration.judge
    folder = re.sub(r"[^\w.]+", "-", f"{judge.backend}-{judge.model}").strip("-")
    name = re.sub(r"[^\w.]+", "-", calibration.metric).strip("-")
    return assay_home() / FOLDER / folder[:80] / f"{name[:80]}-{calibration.identity[:16]}.json"


def _earlier_path(path: Path) -> Path:
    """Return a free path for a calibration that is to be replaced, named by its time."""
    folder = path.with_suffix("")
    folder.mkdir(exist_ok=True)
    time = datetime.fromtimestamp(path.stat().st_mtime, UTC).strftime("%Y-%m-%dT%H-%M-%S")
    names = chain([time], (f"{time}-{number}" for number in count(2)))
    return next(free for name in names if not (free := folder / f"{name}.json").exists())
