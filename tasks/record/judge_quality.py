"""The quality of the judge in the record of a run: certificate and calibrations."""

from pydantic import BaseModel, Field

from metric_core.calibration.judge_error import JudgeErrorFit
from metric_core.calibration.planted_changes import Effect
from tasks.record.part import Part
from tasks.record.stored_figures import JudgeName, StoredFigure

CERTIFICATE_FORMAT = 1


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

    format: int = CERTIFICATE_FORMAT
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


class OwnLabels(Part):
    """Labels of rows of the run itself.

    Args:
        label: Column of the labels.
        span: Labels that correspond to 0 and 1; None for yes and no.
        is_random: True if the labelled rows are a random sample.
        unit: Name of the labelled items, if they are not rows.
    """

    label: str
    span: tuple[float, float] | None
    is_random: bool
    unit: str = "rows"


class CalibratedMetric(Part):
    """The agreement of the judge with people on a metric.

    Args:
        created: Time of the calibration, in ISO 8601.
        source: Source of the labels.
        label: Column of the labels.
        span: Labels that correspond to 0 and 1; None for yes and no.
        verdict: `binary` or `probability`, as verdicts counted.
        compared: Number of labelled rows with a score.
        figures: Name -> figure of agreement.
        error: Error of the judge; None if it is not known for verdicts that count as in this run.
        refused: Reason why the error cannot be used; empty if it can.
        look: Number of looks at its labels so far, over which limits hold.
        applied: True if the run maps the judge's probabilities with the calibration.
        own: Labels of rows of this run; None without any.
    """

    created: str
    source: str
    label: str = ""
    span: tuple[float, float] | None = None
    verdict: str = ""
    compared: int
    figures: dict[str, StoredFigure]
    error: JudgeErrorFit | None = None
    refused: str = ""
    look: int = 1
    applied: bool = False
    own: OwnLabels | None = None


class CalibrationRecord(Part):
    """The calibrations that cover a run.

    Args:
        metrics: Metric -> agreement of the judge with people.
        not_covered: Sentences on calibrations that exist but do not cover this run.
        identities: Metric -> fingerprint of all that its scores depend on in the judge.
    """

    metrics: dict[str, CalibratedMetric] = Field(default_factory=dict)
    not_covered: tuple[str, ...] = ()
    identities: dict[str, str] = Field(default_factory=dict)
