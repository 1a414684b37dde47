"""Store the certificates of judges as files, find the one of a run's judge, and read what it says of each metric.

A certificate belongs to the fingerprint of the judge's verdicts: model, prompts, sampling and all else that determines
them. The latest per fingerprint is in ASSAY_HOME/certificates, in the folder of its judge.
"""

import json
import re
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ValidationError

from metric_core.calibration.planted_changes import Effect
from metric_core.errors import AssayError, ConfigError, RunFolderError
from metric_core.gates.rules import JudgeFlips
from metric_core.parsing.regular_files import regular
from metric_core.question_kinds import QuestionKind
from metric_core.stages import PRODUCTS, closure
from metric_core.statistics.resampling import Interval
from tasks.calibration.calibration_files import JudgeName, StoredFigure
from tasks.options.metric_settings import MetricSettings
from tasks.runtime.atomic_files import create_private_folder, translate_write_errors, write_json
from tasks.runtime.home import assay_home

FORMAT = 1
FOLDER = "certificates"
CERTIFICATE = "certificate"
"""Entry of run.json, and of the details of a run in the history."""


class ChangeEntry(BaseModel, frozen=True, extra="forbid"):
    """The verdicts of one planted change; see `metric_core.calibration.judge_check.ChangeFinding`.

    Args:
        failed: Number of questions without a usable verdict, which are not among those asked.
    """

    change: str
    about: str
    effect: Effect
    asked: int
    wrong: int
    share: StoredFigure
    p: float
    is_fault: bool
    failed: int = 0


class Certificate(BaseModel, frozen=True, extra="forbid"):
    """The effects of planted changes on the verdicts of a judge, on the rows of a run.

    Args:
        created: Time of the check, in ISO 8601.
        identity: Fingerprint of the judge's verdicts.
        run: Folder of the run whose rows were taken.
        rows: Number of rows that claims were taken from.
        questions: Number of questions asked, without those that were cached.
        flips: Share of the verdicts that moved although they must not.
        asked: Number of these verdicts.
        warnings: Sentences that a reader should know.
        versions: Mapping from package to the version that was used.
    """

    format: int = FORMAT
    created: str
    identity: str
    judge: JudgeName
    run: str
    rows: int
    questions: int
    flips: StoredFigure
    asked: int
    changes: tuple[ChangeEntry, ...]
    warnings: tuple[str, ...] = ()
    versions: dict[str, str]

    def entry(self) -> dict[str, Any]:
        """Return the entry of run.json."""
        return self.model_dump(mode="json")


def save_certificate(certificate: Certificate) -> Path:
    """Save a certificate for later runs on this machine, in place of an earlier one of the same fingerprint.

    Raises:
        RunFolderError: The file cannot be written.
    """
    path = _path(certificate.judge, certificate.identity)
    with translate_write_errors(f"the certificate {path}", RunFolderError):
        create_private_folder(path.parent)
        write_json(path, certificate.entry())
    return path


def find_certificate(judge: JudgeName, identity: str) -> Certificate | None:
    """Return the certificate of a judge; None if there is none that can be read.

    Args:
        identity: Fingerprint of the judge's verdicts.
    """
    try:
        found = Certificate.model_validate(json.loads(regular(_path(judge, identity)).read_text(encoding="utf-8")))
    except (OSError, ValueError, ValidationError, ConfigError):
        return None
    return found if (found.identity, found.format) == (identity, FORMAT) else None


def read_flips(manifest: Mapping[str, Any]) -> dict[str, JudgeFlips | None]:
    """Return what the certificate of a run's judge says of the verdicts behind each metric.

    Args:
        manifest: Content of run.json.

    Returns:
        A mapping from the key of each metric that is computed from verdicts on claims; None if there is no
        certificate.
    """
    entry = manifest.get(CERTIFICATE)
    flips = None if entry is None else flips_of(entry)
    return {metric["key"]: flips for metric in manifest.get("metrics", ()) if _reads_verdicts(metric)}


def flips_of(entry: Mapping[str, Any]) -> JudgeFlips:
    """Return what a gate reads of a certificate.

    Args:
        entry: Entry of run.json.
    """
    figure = entry["flips"]
    interval = None if figure["low"] is None else Interval(figure["low"], figure["high"])
    faults = tuple(change["change"] for change in entry["changes"] if change["is_fault"])
    must_move = sum(change["asked"] for change in entry["changes"] if change["effect"] == Effect.MOVE)
    return JudgeFlips(figure["value"], interval, entry["asked"], faults, must_move)


def _reads_verdicts(metric: Mapping[str, Any]) -> bool:
    name = metric.get("origin") or metric.get("name") or metric["key"]
    with suppress(AssayError):
        request = MetricSettings(name=name, parameters=metric.get("parameters") or {}, key=metric["key"]).request()
        return any(PRODUCTS[product].asks is QuestionKind.VERDICT for product in closure(request.products))
    return False


def _path(judge: JudgeName, identity: str) -> Path:
    folder = re.sub(r"[^\w.]+", "-", f"{judge.backend}-{judge.model}").strip("-")
    return assay_home() / FOLDER / folder[:80] / f"{identity[:16]}.json"
