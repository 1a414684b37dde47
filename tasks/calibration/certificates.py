"""Store the certificates of judges as files, find the one of a run's judge, and read what it says of each metric.

A certificate belongs to the fingerprint of the judge's verdicts: model, prompts, sampling and all else that determines
them. The latest per fingerprint is in ASSAY_HOME/certificates, in the folder of its judge.
"""

import json
import re
from contextlib import suppress
from pathlib import Path

from pydantic import ValidationError

from metric_core.calibration.planted_changes import Effect
from metric_core.errors import AssayError, ConfigError, RunFolderError
from metric_core.gates.rules import JudgeFlips
from metric_core.parsing.regular_files import regular
from metric_core.question_kinds import QuestionKind
from metric_core.stages import PRODUCTS, closure
from tasks.options.metric_settings import MetricSettings
from tasks.record.judge_quality import CERTIFICATE_FORMAT, Certificate
from tasks.record.run_record import MetricRecord, RunRecord
from tasks.record.stored_figures import JudgeName
from tasks.runtime.atomic_files import create_private_folder, translate_write_errors, write_json
from tasks.runtime.home import assay_home

FOLDER = "certificates"


def save_certificate(certificate: Certificate) -> Path:
    """Save a certificate for later runs on this machine, in place of an earlier one of the same fingerprint.

    Raises:
        RunFolderError: The file cannot be written.
    """
    path = _path(certificate.judge, certificate.identity)
    with translate_write_errors(f"the certificate {path}", RunFolderError):
        create_private_folder(path.parent)
        write_json(path, certificate.model_dump(mode="json"))
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
    return found if (found.identity, found.format) == (identity, CERTIFICATE_FORMAT) else None


def read_flips(record: RunRecord) -> dict[str, JudgeFlips | None]:
    """Return what the certificate of a run's judge says of the verdicts behind each metric.

    Returns:
        A mapping from the key of each metric that is computed from verdicts on claims; None if there is no
        certificate.
    """
    flips = None if record.certificate is None else flips_of(record.certificate)
    return {metric.key: flips for metric in record.metrics if _reads_verdicts(metric)}


def flips_of(certificate: Certificate) -> JudgeFlips:
    """Return what a gate reads of a certificate."""
    figure = certificate.flips
    faults = tuple(change.change for change in certificate.changes if change.is_fault)
    must_move = sum(change.asked for change in certificate.changes if change.effect is Effect.MOVE)
    return JudgeFlips(figure.value, figure.interval, certificate.asked, faults, must_move)


def _reads_verdicts(metric: MetricRecord) -> bool:
    with suppress(AssayError):
        request = MetricSettings(name=metric.installed, parameters=metric.parameters, key=metric.key).request()
        return any(PRODUCTS[product].asks is QuestionKind.VERDICT for product in closure(request.products))
    return False


def _path(judge: JudgeName, identity: str) -> Path:
    folder = re.sub(r"[^\w.]+", "-", f"{judge.backend}-{judge.model}").strip("-")
    return assay_home() / FOLDER / folder[:80] / f"{identity[:16]}.json"
