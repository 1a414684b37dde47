"""An evaluation that eval-hub orders: its JobSpec, read strictly."""

import json
from pathlib import Path
from typing import Annotated, Any, Self

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError, field_validator, model_validator

from metric_core.errors import ConfigError
from metric_core.suggestions import suggest_names
from tasks.runtime.credentials import refuse_secrets

PROVIDERS = ("ragas", "rag-assay")
_DEFAULT = ("answer_relevancy", "context_precision", "faithfulness", "context_recall", "answer_correctness")
_FULL = (
    *("answer_relevancy", "semantic_similarity", "context_precision", "faithfulness", "context_recall"),
    *("context_entity_recall", "answer_accuracy", "context_relevance", "factual_correctness", "noise_sensitivity"),
    "response_groundedness",
)
BENCHMARKS = {"ragas_rag_default": _DEFAULT, "ragas_rag_full": _FULL}
"""Benchmark -> the metrics that it computes where the job names none."""


def _rename_fields(content: Any, old: str, new: str) -> Any:
    """The content with a field under its newer name."""
    if not isinstance(content, dict) or old not in content:
        return content
    if new in content:
        raise ValueError(f"has {new} and {old}, two names of one field; keep {new}")
    return {new: content[old], **{name: value for name, value in content.items() if name != old}}


class _Part(BaseModel):
    model_config = ConfigDict(frozen=True, hide_input_in_errors=True)


class ModelAuth(_Part):
    """How the model's endpoint is entered.

    Args:
        secret_ref: the Kubernetes secret that holds its key.
    """

    secret_ref: str | None = None


class JobModel(_Part):
    """The model that judges.

    Args:
        url: its OpenAI-compatible endpoint; `/v1` is appended.
        name: its name there.
        auth: how it is entered.
    """

    url: str = Field(min_length=1)
    name: str = Field(min_length=1)
    auth: ModelAuth = ModelAuth()


class JobParameters(_Part):
    """What a job says about the evaluation itself; an unknown parameter is an error.

    Args:
        metrics: what to compute; default: what the benchmark computes.
        embedding_model: default: the name of the judge; `minilm` is the packaged one.
        embedding_url: default: the URL of the judge.
        max_tokens: longest reply of the judge.
        temperature: of the judge.
        column_map: column of the data -> column of a sample.
        max_workers: requests in flight at the judge; default: as many as it takes.
        data_path: the data, absolute or relative to the data folder.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", hide_input_in_errors=True)

    metrics: tuple[str, ...] | None = None
    embedding_model: str | None = None
    embedding_url: str | None = None
    max_tokens: int | None = Field(None, ge=16)
    temperature: float | None = Field(None, ge=0, le=2)
    column_map: dict[str, str] | None = None
    max_workers: int | None = Field(None, ge=1)
    data_path: str | None = Field(None, min_length=1)

    @model_validator(mode="before")
    @classmethod
    def _by_one_name(cls, content: Any) -> Any:
        return _rename_fields(content, "scoring_functions", "metrics")

    @field_validator("metrics")
    @classmethod
    def _at_least_one(cls, metrics: tuple[str, ...] | None) -> tuple[str, ...] | None:
        if metrics is not None and not metrics:
            raise ValueError("names no metric; leave it out for those of the benchmark")
        return metrics


class JobSpec(_Part):
    """A job as eval-hub writes it. Fields that are not listed here are kept, and reported as not used."""

    model_config = ConfigDict(frozen=True, extra="allow", hide_input_in_errors=True)

    id: str = Field(min_length=1)
    provider_id: str = "ragas"
    benchmark_id: str = Field(min_length=1)
    benchmark_index: int = Field(0, ge=0)
    model: JobModel
    parameters: JobParameters = JobParameters()
    num_examples: int | None = Field(None, ge=1)
    callback_url: Annotated[str, AfterValidator(refuse_secrets)] | None = None

    @model_validator(mode="before")
    @classmethod
    def _by_one_name(cls, content: Any) -> Any:
        return _rename_fields(content, "benchmark_config", "parameters")

    @classmethod
    def from_file(cls, path: Path) -> Self:
        """Reads a job.

        Raises:
            ConfigError: it is not there, no JSON, or lacks or has what a job must or can not have.
        """
        try:
            content = json.loads(path.read_text(encoding="utf-8"))
        except FileNotFoundError as error:
            raise ConfigError(f"there is no job {path}; name its file, or set EVALHUB_JOB_SPEC_PATH") from error
        except (OSError, ValueError) as error:
            raise ConfigError(f"the job {path} can not be read as JSON: {error}") from error
        return cls.of(content, str(path))

    @classmethod
    def of(cls, content: Any, origin: str = "the job") -> Self:
        """A job from its JSON.

        Raises:
            ConfigError: it lacks or has what a job must or can not have.
        """
        try:
            job = cls.model_validate(content)
        except ValidationError as error:
            lines = [problem_line(problem) for problem in error.errors(include_url=False, include_input=False)]
            raise ConfigError(f"{origin} is no job that can be run:\n" + "\n".join(lines)) from None
        if job.provider_id not in PROVIDERS:
            raise ConfigError(f"{origin} is for the provider {job.provider_id!r}, this is {' or '.join(PROVIDERS)}")
        return job

    @property
    def unused(self) -> tuple[str, ...]:
        """The fields that change nothing here."""
        return tuple(sorted(self.model_extra or ()))

    @property
    def metrics(self) -> tuple[str, ...]:
        """The metrics to compute, as the job or its benchmark calls them.

        Raises:
            ConfigError: the job names none, and its benchmark is not known.
        """
        if self.parameters.metrics is not None:
            return self.parameters.metrics
        if self.benchmark_id not in BENCHMARKS:
            near = suggest_names(self.benchmark_id, BENCHMARKS) or list(BENCHMARKS)
            raise ConfigError(
                f"the job names no metrics, and its benchmark {self.benchmark_id!r} is not known; there are: "
                f"{', '.join(near)}. Name parameters.metrics"
            )
        return BENCHMARKS[self.benchmark_id]


def problem_line(problem: Any) -> str:
    """What is wrong with a field, without its value."""
    where = ".".join(map(str, problem["loc"])) or "the job"
    if problem["type"] == "extra_forbidden":
        known = [name for name in JobParameters.model_fields if name != "metrics"]
        near = ", ".join(suggest_names(str(problem["loc"][-1]), ["metrics", *known])) or ", ".join(["metrics", *known])
        return f"  {where}: there is no such parameter; there are: {near}"
    return f"  {where}: {'is missing' if problem['type'] == 'missing' else problem['msg']}"
