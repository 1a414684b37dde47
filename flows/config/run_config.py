"""The configuration of a run: what flows receive as their parameter."""

import json
import re
from typing import Annotated, Any, Literal, TypeAlias

from pydantic import AfterValidator, BeforeValidator, Field

from flows.config.deploy_options import DeploySettings
from flows.config.runner_options import RunnerOptions, parse_runner
from metric_core.errors import ConfigError
from metric_core.metric import MetricRequest
from metric_core.stages import Stage
from tasks.cache.cache_address import normalize_address
from tasks.options.model_options import EmbedderSettings, JudgeSettings, LanguageSettings, Settings
from tasks.options.retriever_options import RetrieverOptions, parse_retriever
from tasks.options.server_addresses import refuse_bare_host
from tasks.plugins.metric_lookup import find_metric, parse_metric
from tasks.runtime.credentials import refuse_secrets
from tasks.runtime.home import assay_home

SHARD_ROWS, SHARD_ROWS_OF_A_SERVER = 2000, 25
"""Rows a shard, where none are set: so many that stages have work, so few that a prefix cache holds their passages."""

WORKERS, WORKERS_OF_A_SERVER = 4, 8
"""Stages at the same time, where none are set: while some prepare questions, others keep a server busy."""


def _split_metrics(value: Any) -> Any:
    """`a,b(c=1,d=2)` -> [a, b(c=1,d=2)]: commas inside parentheses belong to the metric."""
    if not isinstance(value, str):
        return value
    if value.lstrip().startswith("["):
        return json.loads(value)
    return [part.strip() for part in re.split(r",(?![^(]*\))", value) if part.strip()]


def _split_pairs(value: Any) -> Any:
    """`a=b,c=d` -> {a: b, c: d}."""
    if not isinstance(value, str):
        return value
    if value.lstrip().startswith("{"):
        return json.loads(value)
    pairs = [part.partition("=") for part in value.split(",") if part.strip()]
    if any(not equals for _, equals, _ in pairs):
        raise ValueError("expected data_column=sample_column, comma-separated")
    return {name.strip(): target.strip() for name, _, target in pairs}


def _split_names(value: Any) -> Any:
    """`claims,verdicts` -> [claims, verdicts]."""
    if not isinstance(value, str):
        return value
    if value.lstrip().startswith("["):
        return json.loads(value)
    return [part.strip() for part in value.split(",") if part.strip()]


def parse_model(value: Any) -> Any:
    """A judge or an embedder by one word -> its settings: a backend such as `builtin`, or the URL of a server.

    >>> parse_model("http://localhost:8000/v1")
    {'backend': 'server', 'server': {'urls': ['http://localhost:8000/v1']}}

    Raises:
        ConfigError: a host and a port, without a scheme.
    """
    if not isinstance(value, str):
        return value
    refuse_bare_host(value)
    return {"backend": "server", "server": {"urls": [value]}} if "://" in value else {"backend": value}


def _parse_models(value: Any) -> Any:
    """`builtin,http://gpu2:8000/v1`, or a list of words and tables -> a list of settings."""
    if isinstance(value, str):
        value = json.loads(value) if value.lstrip().startswith("[") else [part.strip() for part in value.split(",")]
    return [parse_model(model) for model in value] if isinstance(value, list | tuple) else value


def _refuse_launched_panel(panel: tuple[JudgeSettings, ...]) -> tuple[JudgeSettings, ...]:
    if any(member.launch is not None for member in panel):
        raise ValueError(
            "a run launches its lead judge only; start the others with `assay judge start`, and give their URLs"
        )
    return panel


class MetricChoice(Settings):
    """A metric with parameters of the user's own.

    Args:
        metric: the metric's name.
        key: the name under which its scores are kept; by default made of metric and parameters.
        parameters: the parameters that differ from their defaults.
    """

    metric: str
    key: str | None = None
    parameters: dict[str, Any] = Field(default_factory=dict)

    def request(self) -> MetricRequest:
        """The metric request it stands for."""
        key = self.key or self.parameters.get("name")
        return find_metric(self.metric).request(self.parameters, key)


MetricChoices: TypeAlias = Annotated[tuple[str | MetricChoice, ...] | None, BeforeValidator(_split_metrics)]
"""Metrics by name, with parameters or without; None where none are named."""


class RunConfig(Settings):
    """What to evaluate, by which metrics, with which models, and where the results go."""

    source: Annotated[str, AfterValidator(refuse_secrets)] | None = Field(
        None,
        description="the data: a file, a folder of files, a pattern (logs/*.jsonl), an fsspec URL or hub:owner/name",
    )
    metrics: MetricChoices = Field(None, description="metrics to compute; without it, all whose columns the data has")
    column_map: Annotated[dict[str, str], BeforeValidator(_split_pairs)] = Field(
        default_factory=dict,
        description="column of the data = column of a sample, where the names differ",
        examples=[{"prompt": "user_input"}],
    )
    id_column: str | None = Field(
        None, description="column with the rows' ids; default row_id or id, else a digest", examples=["ticket"]
    )
    limit: int | None = Field(None, ge=1, description="take the first rows only", examples=[100])
    on_bad_row: Literal["fail", "skip"] = Field(
        "fail", description="stop at bad rows, or leave them out and count them"
    )
    empty_text: Literal["bad", "keep"] = Field(
        "bad", description="whether an empty text in a required column makes a row bad"
    )
    verdict: Literal["binary", "probability"] = Field(
        "binary", description="count a verdict as 0 or 1, or as the judge's probability of yes"
    )
    calibration: str = Field(
        "none",
        description='with verdict = "probability", map the probabilities: none, kept (as calibrated for this judge), '
        "or a calibration.json",
        examples=["kept"],
    )
    judge: Annotated[JudgeSettings, BeforeValidator(parse_model)] = Field(
        JudgeSettings(), description="who answers the judge questions"
    )
    panel: Annotated[
        tuple[JudgeSettings, ...], BeforeValidator(_parse_models), AfterValidator(_refuse_launched_panel)
    ] = Field(
        (),
        description="further judges: labels are decided by the majority of judge and panel, ties by judge",
        examples=[["http://gpu2:8000/v1", "builtin"]],
    )
    explain: Literal["none", "unsupported", "all"] = Field(
        "none", description="which verdicts on claims the judge explains afterwards"
    )
    embedder: Annotated[EmbedderSettings, BeforeValidator(parse_model)] = Field(
        EmbedderSettings(), description="what turns texts into vectors"
    )
    language: LanguageSettings = Field(LanguageSettings(), description="what finds entities and splits sentences")
    out: str | None = Field(None, description="the run folder; default runs/<time>-<source>", examples=["runs/nightly"])
    tables: Annotated[str, AfterValidator(refuse_secrets)] | None = Field(
        None,
        description="folder or fsspec URL of the stage tables; default ASSAY_HOME/tables",
        examples=["s3://bucket/assay"],
    )
    answers: Annotated[str, AfterValidator(normalize_address)] | None = Field(
        None,
        description="store of answers: a SQLite file or a postgresql:// URL; default ASSAY_HOME/answers.db",
        examples=["postgresql://assay@db.example/answers"],
    )
    refresh: Annotated[tuple[Stage, ...], BeforeValidator(_split_names)] = Field(
        (), description="stages to compute anew although they are kept", examples=[["verdicts"]]
    )
    baseline: str | None = Field(
        None, description="folder of an earlier run, to say which rows have changed since", examples=["runs/monday"]
    )
    shard_rows: int | None = Field(
        None, ge=1, description="rows a shard; default 25 where a server judges, else 2000", examples=[100]
    )
    workers: int | None = Field(
        None,
        ge=1,
        description="stages that run at the same time; default 8 threads where a server judges, else 4",
        examples=[4],
    )
    runner: Annotated[RunnerOptions, BeforeValidator(parse_runner)] = Field(
        RunnerOptions(),
        description="where stages are computed: threads, dask or ray, or the address of a cluster",
        examples=["dask", "ray://head.example:10001"],
    )
    retriever: Annotated[RetrieverOptions, BeforeValidator(parse_retriever)] | None = Field(
        None,
        description="index from which the contexts of the questions are fetched: an http(s) URL or module:attribute",
        examples=["http://localhost:9000/search"],
    )
    deploy: DeploySettings = Field(
        DeploySettings(), description="schedules, gate, baselines and alerts of runs that nobody starts by hand"
    )

    def rows_a_shard(self) -> int:
        """How many rows stages work on at a time.

        Few where a server judges: later questions about a passage then find it in the server's prefix cache.
        """
        if self.shard_rows is not None:
            return self.shard_rows
        return SHARD_ROWS_OF_A_SERVER if self._is_served() else SHARD_ROWS

    def stages_at_once(self) -> int:
        """How many stages run at the same time.

        More where a server judges, for most of them wait for it; each process of a cluster loads models of its own.
        """
        if self.workers is not None:
            return self.workers
        return WORKERS_OF_A_SERVER if self._is_served() and self.runner.engine == "threads" else WORKERS

    def _is_served(self) -> bool:
        return any(judge.backend == "server" or judge.launch is not None for judge in (self.judge, *self.panel))

    def requests(self) -> list[MetricRequest] | None:
        """The metrics named, with complete parameters; None where none are named.

        Raises:
            ConfigError: an unknown metric or parameter, or one name for two metrics.
        """
        if self.metrics is None:
            return None
        requests = [parse_metric(m) if isinstance(m, str) else m.request() for m in self.metrics]
        keys = [request.key for request in requests]
        twice = sorted({key for key in keys if keys.count(key) > 1})
        if twice:
            raise ConfigError(f"the metric {twice[0]!r} is asked for twice; give one of them another key")
        if not requests:
            raise ConfigError("metrics is empty; name at least one, or leave it out for all that the data allows")
        return requests


def with_launched_judge(config: RunConfig, url: str) -> RunConfig:
    """The configuration with a judge that has been launched."""
    options = config.judge.server.model_dump() if config.judge.server else {}
    judge = {"backend": "server", "server": {**options, "urls": [url]}}
    return config.model_copy(update={"judge": JudgeSettings.model_validate(judge)})


def tables_root(config: RunConfig) -> str:
    """Root of the store of stage tables."""
    return config.tables or str(assay_home() / "tables")
