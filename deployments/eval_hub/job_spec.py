"""The JobSpec of an evaluation job of eval-hub, strictly validated."""

from pathlib import Path
from typing import Annotated, Any, Self

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    SecretStr,
    StringConstraints,
    ValidationError,
    field_validator,
    model_validator,
)

from flows.config.config_files import read_options
from metric_core.errors import ConfigError
from metric_core.parsing.suggestions import suggest_names
from tasks.runtime.credentials import refuse_secrets

PROVIDERS = ("ragas", "rag-assay")
_DEFAULT = ("answer_relevancy", "context_precision", "faithfulness", "context_recall", "answer_correctness")
_FULL = (
    *("answer_relevancy", "semantic_similarity", "context_precision", "faithfulness", "context_recall"),
    *("context_entity_recall", "answer_accuracy", "context_relevance", "factual_correctness", "noise_sensitivity"),
    "response_groundedness",
)
BENCHMARKS = {"ragas_rag_default": _DEFAULT, "ragas_rag_full": _FULL}
"""Mapping from benchmark to the metrics that it computes if the job names none."""


def _rename_fields(content: Any, old: str, new: str) -> Any:
    """Return the content with a field renamed to its newer name."""
    if not isinstance(content, dict) or old not in content:
        return content
    if new in content:
        raise ValueError(f"has {new} and {old}, two names of one field; keep {new}")
    return {new: content[old], **{name: value for name, value in content.items() if name != old}}


def _v1(url: str) -> str:
    plain = url.strip().rstrip("/")
    return plain if plain.endswith("/v1") or not plain else f"{plain}/v1"


class _Part(BaseModel):
    model_config = ConfigDict(frozen=True, hide_input_in_errors=True)


class ModelAuth(_Part):
    """The authentication at the model's endpoint.

    Args:
        secret_ref: Name of the Kubernetes secret with the API key; in local mode, the file URL of its folder.
    """

    secret_ref: Annotated[str, StringConstraints(strip_whitespace=True, min_length=1)]


class JobModel(_Part):
    """The model under test, which is also the judge and the embedder unless the parameters name others.

    Args:
        url: URL of its OpenAI-compatible endpoint; `/v1` is appended. Empty if the job needs no endpoint of the model.
        name: Name of the model at the endpoint.
        auth: Authentication at the endpoint; None for none.
    """

    url: str = ""
    name: str = Field(min_length=1)
    auth: ModelAuth | None = None

    @property
    def endpoint(self) -> str:
        """The URL of the endpoint with `/v1`; empty if there is none."""
        return _v1(self.url)


class PrimaryScore(_Part):
    """The metric by which eval-hub judges the benchmark.

    Args:
        lower_is_better: True if lower values are better.
    """

    metric: str
    lower_is_better: bool = False


class JobParameters(_Part):
    """The parameters of the evaluation; an unknown parameter is an error.

    Args:
        metrics: Metrics to compute; default: the metrics of the benchmark.
        embedding_model: Name of the embedding model; default: the job's model; `minilm` is the packaged model.
        embedding_url: URL of the embedding server; default: the URL of the job's model.
        judge_model: Name of the judge; default: the job's model.
        judge_url: URL of the judge's server; default: the URL of the job's model.
        judge_api_key: API key of the judge. Whoever can read the job can read it: a secret is better.
        max_tokens: Maximum number of tokens of a reply of the judge.
        temperature: Sampling temperature of the judge, from 0 to 2.
        column_map: Mapping from column of the data to column of a sample.
        max_workers: Number of concurrent requests to a server; by default as many as eval-hub's own provider may send.
        data_path: Path of the data, absolute or relative to the data folder.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", hide_input_in_errors=True)

    metrics: tuple[str, ...] | None = None
    embedding_model: str | None = None
    embedding_url: str | None = None
    judge_model: str | None = None
    judge_url: str | None = None
    judge_api_key: SecretStr | None = Field(None, min_length=1)
    max_tokens: int | None = Field(None, ge=16)
    temperature: float | None = Field(None, ge=0, le=2)
    column_map: dict[str, str] | None = None
    max_workers: int = Field(10, ge=1)
    data_path: str | None = Field(None, min_length=1)

    @model_validator(mode="before")
    @classmethod
    def _by_one_name(cls, content: Any) -> Any:
        return _rename_fields(content, "scoring_functions", "metrics")

    @field_validator("metrics")
    @classmethod
    def _at_least_one(cls, metrics: tuple[str, ...] | None) -> tuple[str, ...] | None:
        if metrics is not None and not metrics:
            raise ValueError("names no metric; omit it for the metrics of the benchmark")
        return metrics


class OciExport(_Part):
    """The place of the results in an OCI registry; the SDK of eval-hub validates its coordinates."""

    coordinates: dict[str, Any]


class JobExports(_Part):
    """Places to which the results are exported."""

    oci: OciExport | None = None


class JobSpec(_Part):
    """A job in eval-hub's format. Other fields are accepted and reported as not used.

    `num_examples` is the number of rows to evaluate, from the first; 0, like none, means all rows.
    """

    model_config = ConfigDict(frozen=True, extra="allow", hide_input_in_errors=True)

    id: str = Field(min_length=1)
    provider_id: str = "ragas"
    benchmark_id: str = Field(min_length=1)
    benchmark_index: int = Field(0, ge=0)
    model: JobModel
    parameters: JobParameters = JobParameters()
    num_examples: int | None = Field(None, ge=0)
    callback_url: Annotated[str, AfterValidator(refuse_secrets)] | None = None
    primary_score: PrimaryScore | None = None
    experiment_name: str | None = None
    tags: tuple[dict[str, str], ...] = ()
    exports: JobExports | None = None

    @property
    def exports_anything(self) -> bool:
        """Whether the job names an MLflow experiment or an OCI registry for its results."""
        return bool(self.experiment_name) or (self.exports is not None and self.exports.oci is not None)

    @model_validator(mode="before")
    @classmethod
    def _by_one_name(cls, content: Any) -> Any:
        return _rename_fields(content, "benchmark_config", "parameters")

    @classmethod
    def from_file(cls, path: Path) -> Self:
        """Read a job from a file.

        Raises:
            ConfigError: The file does not exist, is not JSON, or is not a valid job.
        """
        try:
            content = read_options(path, "the job", "JSON")
        except FileNotFoundError as error:
            raise ConfigError(f"there is no job {path}; name its file, or set EVALHUB_JOB_SPEC_PATH") from error
        return cls.from_content(content, str(path))

    @classmethod
    def from_content(cls, content: Any, origin: str = "the job") -> Self:
        """Return a job from its parsed JSON.

        Raises:
            ConfigError: The content is not a valid job.
        """
        try:
            job = cls.model_validate(content)
        except ValidationError as error:
            lines = [problem_line(problem) for problem in error.errors(include_url=False, include_input=False)]
            raise ConfigError(f"{origin} is not a valid job:\n" + "\n".join(lines)) from None
        if job.provider_id not in PROVIDERS:
            raise ConfigError(f"{origin} is for the provider {job.provider_id!r}, this is {' or '.join(PROVIDERS)}")
        return job

    @property
    def unused(self) -> tuple[str, ...]:
        """The fields that say something and have no effect."""
        return tuple(sorted(name for name, value in (self.model_extra or {}).items() if value))

    @property
    def judge_endpoint(self) -> str:
        """The URL of the judge's server with `/v1`; empty if there is none."""
        return _v1(self.parameters.judge_url or self.model.url)

    @property
    def embedding_endpoint(self) -> str:
        """The URL of the embedding server with `/v1`; empty if there is none."""
        return _v1(self.parameters.embedding_url or self.model.url)

    @property
    def metrics(self) -> tuple[str, ...]:
        """The metrics to compute, named as in the job or its benchmark.

        Raises:
            ConfigError: The job names no metrics, and its benchmark is not known.
        """
        if self.parameters.metrics is not None:
            return self.parameters.metrics
        if self.benchmark_id not in BENCHMARKS:
            near = suggest_names(self.benchmark_id, BENCHMARKS) or list(BENCHMARKS)
            raise ConfigError(
                f"the job names no metrics, and its benchmark {self.benchmark_id!r} is not known; known are: "
                f"{', '.join(near)}. Set parameters.metrics"
            )
        return BENCHMARKS[self.benchmark_id]


def problem_line(problem: Any) -> str:
    """Return a description of the problem with a field, without its value."""
    where = ".".join(map(str, problem["loc"])) or "the job"
    if problem["type"] == "extra_forbidden":
        known = [name for name in JobParameters.model_fields if name != "metrics"]
        near = ", ".join(suggest_names(str(problem["loc"][-1]), ["metrics", *known])) or ", ".join(["metrics", *known])
        return f"  {where}: there is no such parameter; there are: {near}"
    return f"  {where}: {'is missing' if problem['type'] == 'missing' else problem['msg']}"
