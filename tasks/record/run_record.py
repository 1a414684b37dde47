"""The record of a run: the content of run.json."""

from dataclasses import dataclass
from math import inf, isinf
from typing import Annotated, Any, Literal, TypeAlias

from pydantic import BeforeValidator, ConfigDict, Field, PlainSerializer, model_validator

from metric_core.calibration.sure_threshold import SureThreshold
from metric_core.question_kinds import KindGroup
from metric_core.records import Direction
from metric_core.stages import Stage
from tasks.models.embedders.protocol import EmbedderIdentity
from tasks.models.judges.protocol import NO_JUDGE, JudgeIdentity
from tasks.models.recognizers.protocol import RecognizerIdentity
from tasks.record.findings import Findings
from tasks.record.judge_quality import CalibrationRecord, Certificate
from tasks.record.judgments import JudgmentsRecord
from tasks.record.other_runs import RerunRecord, RunReference
from tasks.record.part import Part
from tasks.runtime.usage import KindUsage, StageUsage


def _read_bounds(value: Any) -> Any:
    """Return the bounds of a metric, infinite where JSON has null for a greatest value that there is not."""
    is_open = isinstance(value, list | tuple) and len(value) == 2 and value[1] is None
    return (value[0], inf) if is_open else value


def _write_bounds(value: tuple[float, float] | None) -> tuple[float, float | None] | None:
    return (value[0], None) if value is not None and isinf(value[1]) else value


RecordedBounds: TypeAlias = Annotated[
    tuple[float, float] | None,
    BeforeValidator(_read_bounds, json_schema_input_type=tuple[float, float | None] | None),
    PlainSerializer(_write_bounds, when_used="json"),
]
"""Bounds of a metric. JSON has null for the greatest value of a metric without one."""

FORMAT: Literal[1] = 1
RELEASE = "rag-assay"
"""Name of this package among the versions."""

RunStatus: TypeAlias = Literal["running", "completed", "failed", "stopped"]
_OF_FINISHED = ("rows", "metrics", "stages", "usage")
"""Entries of every finished run."""


class RecordedCascade(Part):
    """Options of a cascade."""

    model_config = ConfigDict(frozen=True, extra="allow")

    most_disagreement: float


class RecordedConfig(Part):
    """The configuration of a run: all options by name. Those that readers need have fields here."""

    model_config = ConfigDict(frozen=True, extra="allow")

    verdict: str = "binary"
    by: str | None = None
    weights: str | None = None
    traffic: dict[str, dict[str, float]] = Field(default_factory=dict)
    citation_pattern: str | None = None
    chunks: str | None = None
    history: str | None = None
    history_page: str | None = None
    name: str | None = None
    system_version: str | None = None
    language: dict[str, Any] = Field(default_factory=dict)
    cascade: RecordedCascade | None = None

    @property
    def judge_servers(self) -> dict[KindGroup | None, dict[str, Any]]:
        """Options of the servers of judges by the group of questions that they answer; None for all others."""
        judge = (self.model_extra or {}).get("judge") or {}
        known: dict[KindGroup | None, Any] = {None: judge, **{group: judge.get(group) for group in KindGroup}}
        return {group: found["server"] for group, found in known.items() if found and found.get("server")}

    @property
    def options(self) -> dict[str, Any]:
        """All options by name."""
        return self.to_json()


@dataclass(frozen=True, slots=True)
class BadRowNote:
    """A row that was left out.

    Args:
        number: Number of the row in the source, from 1.
        column: Faulty column; None for the row as a whole.
    """

    number: int
    column: str | None
    problem: str


@dataclass(frozen=True, slots=True)
class AnsweringJudge(JudgeIdentity):
    """A judge of a run and the questions that it answers.

    Args:
        name: Name of the judge, unique in the run.
        groups: Groups of these questions.
        kinds: Kinds of these questions.
        features: Features of its server or model.
        panel: Members of a panel.
        usage: Cost of its questions; None until the run is finished.
    """

    name: str = ""
    groups: tuple[str, ...] = ()
    kinds: tuple[str, ...] = ()
    features: dict[str, Any] | None = None
    panel: tuple[JudgeIdentity, ...] = ()
    usage: KindUsage | None = None


class CascadeRecord(Part):
    """The cheaper judge of a cascade, which its thresholds are about.

    Args:
        name: Name of the cheaper judge.
        lead: Name of the judge that is asked otherwise.
        judge: Digest of the fingerprints of the cheaper judge.
        writer: Fingerprint of the judge that writes the claims.
        thresholds: Verdicts, as `describe_verdicts` names them -> threshold.
    """

    name: str
    lead: str
    judge: str
    writer: str
    thresholds: dict[str, SureThreshold]


class MetricRecord(Part):
    """A metric of a run.

    Args:
        origin: Import path of a metric of a plugin; empty for a built-in metric.
        code: Digest of the code of such a metric, and of functions that its parameters name.
        summary: The metric in a sentence.
        question: Question to people who label rows; a yes is a high score. Empty if the metric has none.
        bounds: Least and greatest value, the latter null if values have no limit; None if it has none.
        language_model: True if it needs a judge with a language model.
        undefined: Reason for an undefined score -> its meaning.
        tolerated: Worst value of a row that passes a gate without a rule about the metric; None if it has no such rule.
    """

    key: str
    name: str
    origin: str = ""
    code: str = ""
    summary: str = ""
    question: str = ""
    family: str = ""
    direction: Direction
    bounds: RecordedBounds = None
    parameters: dict[str, Any]
    language_model: bool = False
    undefined: dict[str, str] = Field(default_factory=dict)
    tolerated: float | None = None

    @property
    def installed(self) -> str:
        """Name by which the metric is found here."""
        return self.origin or self.name


class StageRecord(StageUsage):
    """A stage of a run, with its cost.

    Args:
        rows: Number of rows of its table.
        schema_version: Version of the columns of the table.
        digests: Digests of the shards of the table.
    """

    rows: int = Field(default=0, ge=0)
    schema_version: int = 0
    digests: tuple[str, ...] = ()


class DeploymentRecord(Part):
    """The subject of a run of a deployment.

    Args:
        name: Name of the deployment; empty for a run that was started manually.
        index: Id of the index; empty if the run is not about one.
        version: Version of the index.
    """

    name: str = ""
    index: str = ""
    version: str = ""


class StartRecord(Part):
    """The start of a monitored run.

    Args:
        trigger: `schedule`, `event` or `manual`.
        due: Time at which it was due, in ISO 8601 and UTC.
    """

    trigger: Literal["schedule", "event", "manual"]
    due: str


class RetrievalRecord(Part):
    """The fetch of the contexts of a run.

    Args:
        questions: Source of the questions.
        index: Description of the index.
        without_passages: Number of questions without any passage.
        fetched: Time at which they were fetched, in ISO 8601.
    """

    questions: str
    index: str
    rows_read: int
    bad_row_count: int
    without_passages: int
    fetched: str
    seconds: float


class RunRecord(Findings):
    """The record of a run, with the entries of its findings. A run that is not finished lacks what is known at its end.

    Args:
        run_id: Id of the run.
        created: Start of the run, in ISO 8601.
        source: Source of the rows.
        config: Configuration of the run.
        judge: Judge of the run; one that stands for all if there are several.
        embedder: Embedding model; None in a run that compares no vectors.
        language: Pipeline of the language.
        recognizer: Recognizer of named entities, if it is not that of the pipeline.
        judges: Judges and what they answer.
        judge_features: Features of the server or model of the first judge.
        server_warnings: Warnings about servers.
        foreign_answers: Sentences on cached answers of a model that is another one now.
        judge_fingerprints: Kind of question -> fingerprint of the judge that answers it.
        prompts: Kind of question -> digest of its prompts.
        unanswerable: Metric -> kinds of questions that its judge cannot answer.
        panel: Members of a panel.
        cascade: Cheaper judge of a cascade; None without one.
        formulas: Digest of the code of the formulas; None if it is not known.
        stage_versions: Stage -> version.
        calibration: Calibrations that cover the run.
        certificate: Certificate of the judge of verdicts; None without one.
        left_out: Metric that cannot be computed -> columns that it lacks.
        versions: Package -> version.
        name: Name of the evaluation.
        deployment: Subject of a run of a deployment; None for a run that was started manually.
        start: Start of a monitored run.
        parent: Run that this is a rerun of.
        rerun: Part of the run that a rerun computed again.
        retrieval: Fetch of the contexts, if the run fetched them.
        seconds: Duration of the computation; None if it did not finish.
        status: State of the run.
        reason: Reason why it failed or stopped.
        rows_read: Number of rows in the source, including bad rows.
        bad_row_count: Number of rows that were left out.
        bad_rows: The first of these rows.
        judgments: Judgments of texts after an index was rebuilt.
        languages: Language -> number of rows.
        warnings: Warnings for the user.
        rows: Number of rows.
        repetition: Sentence on rows that repeat a text; None if hardly any do.
        metrics: Metrics, in the order of the report.
        stages: Stage -> what it computed.
        usage: Cost of all stages.
        failures: Sentences on metrics with too many failed cells.
    """

    format: Literal[1]
    run_id: str
    created: str
    source: str
    config: RecordedConfig
    judge: JudgeIdentity = NO_JUDGE
    embedder: EmbedderIdentity | None = None
    language: RecognizerIdentity
    recognizer: RecognizerIdentity | None = None
    judges: tuple[AnsweringJudge, ...] = ()
    judge_features: dict[str, Any] | None = None
    server_warnings: tuple[str, ...] = ()
    foreign_answers: tuple[str, ...] = ()
    judge_fingerprints: dict[str, str] = Field(default_factory=dict)
    prompts: dict[str, str] = Field(default_factory=dict)
    unanswerable: dict[str, tuple[str, ...]] = Field(default_factory=dict)
    panel: tuple[JudgeIdentity, ...] = ()
    cascade: CascadeRecord | None = None
    formulas: str | None = None
    stage_versions: dict[Stage, int] = Field(default_factory=dict)
    calibration: CalibrationRecord = CalibrationRecord()
    certificate: Certificate | None = None
    left_out: dict[str, tuple[str, ...]] = Field(default_factory=dict)
    versions: dict[str, str]
    name: str = ""
    deployment: DeploymentRecord | None = None
    start: StartRecord | None = None
    parent: RunReference | None = None
    rerun: RerunRecord | None = None
    seconds: float | None = None
    retrieval: RetrievalRecord | None = None
    status: RunStatus
    reason: str | None = None
    rows_read: int = Field(default=0, ge=0)
    bad_row_count: int = Field(default=0, ge=0)
    bad_rows: tuple[BadRowNote, ...] = ()
    judgments: JudgmentsRecord | None = None
    languages: dict[str, int] = Field(default_factory=dict)
    warnings: tuple[str, ...] = ()
    rows: int = Field(default=0, ge=0)
    repetition: str | None = None
    metrics: tuple[MetricRecord, ...] = ()
    stages: dict[Stage, StageRecord] = Field(default_factory=dict)
    usage: StageUsage = StageUsage()
    failures: tuple[str, ...] = ()

    @model_validator(mode="after")
    def _check_finished(self) -> "RunRecord":
        missing = [name for name in _OF_FINISHED if name not in self.model_fields_set]
        if self.status == "completed" and missing:
            raise ValueError(f"a finished run has {', '.join(missing)}")
        return self

    @property
    def release(self) -> str | None:
        """Version of this package that wrote the record."""
        return self.versions.get(RELEASE)
