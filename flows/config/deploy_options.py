"""Declare the options of runs that are not started manually: schedule, gate, baselines and alerts."""

from typing import Annotated, Literal, Self
from urllib.parse import urlsplit

from pydantic import AfterValidator, Field, model_validator

from flows.config.alert_options import AlertSettings
from flows.config.gate_file import KEPT_AT_LEAST, CoverageSettings, GateChoice, GateSettings, RegressionSettings
from flows.config.intervals import Interval
from tasks.options.option import Option, OptionGroup
from tasks.runtime.credentials import check_reference, is_reference, refuse_secrets

LONGEST_WAIT = 600.0
"""Seconds that an event waits at most, even if others keep coming."""

_LEAST_DEBOUNCES = 4
"""Number of times `debounce_seconds` that it waits if that is longer: an ordinary burst is evaluated once."""


class EventSettings(OptionGroup, affects_scores=False):
    """Options that say which events start a run, what they may announce, and how long a run waits for further ones."""

    index: Annotated[
        str,
        Option(
            "Indexes whose events start an evaluation; * matches any characters.",
            holds="text",
            pattern=r"^[A-Za-z0-9*][A-Za-z0-9._*-]*$",
        ),
    ] = "*"
    datasets: Annotated[
        Annotated[str, AfterValidator(refuse_secrets)] | None,
        Option(
            "Folder, or beginning of URLs, in which the data sets that events announce must lie. Default: the folder "
            "of `source`.",
            holds="address",
            examples=["s3://bucket/handbook"],
        ),
    ] = None
    index_limits: Annotated[
        dict[str, float],
        Option(
            "Shares of documents or chunks beyond which a rebuilt index is not evaluated, by kind of change; 1 allows "
            "any number. Default: those of the check.",
            holds="text",
            examples=[{"lost": 0.02, "edited": 0.5}],
        ),
    ] = Field(default_factory=dict)
    beyond_limits: Annotated[
        Literal["stop", "evaluate"],
        Option("An index beyond its limits stops the run before anything is asked, or is evaluated all the same."),
    ] = "stop"
    debounce_seconds: Annotated[
        float,
        Option(
            "Seconds that an event of an index waits for a later one; a burst of events is evaluated once.",
            ge=0,
            le=3600,
        ),
    ] = 10.0

    @property
    def longest_wait(self) -> float:
        """The maximum number of seconds that an event waits.

        >>> EventSettings().longest_wait, EventSettings(debounce_seconds=300).longest_wait
        (600.0, 1200.0)
        """
        return max(LONGEST_WAIT, _LEAST_DEBOUNCES * self.debounce_seconds)


def default_gate() -> GateSettings:
    """Return the default gate.

    No metric is worse than in the baseline by more than 0.05, beyond chance, and nine tenths of the rows that are
    scored in the baseline are scored in both runs.
    """
    return GateSettings(
        regression=(RegressionSettings(max_drop=0.05, metrics=None),),
        coverage=(CoverageSettings(paired_at_least=KEPT_AT_LEAST),),
        inconclusive="passed",
    )


def _check_heartbeat(address: str) -> str:
    if is_reference(address):
        return check_reference(address)
    parts = urlsplit(address)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise ValueError("the heartbeat must be an http(s) URL, or the name of one: env:NAME or block:NAME")
    return refuse_secrets(address)


class DeploySettings(EventSettings, affects_scores=False):
    """Options of `assay serve` and `assay deploy`."""

    cron: Annotated[
        str | None,
        Option(
            "Cron expression for the monitored evaluations. Default: no schedule.", holds="text", examples=["0 6 * * *"]
        ),
    ] = None
    interval: Annotated[
        Interval | None,
        Option(
            "Interval between monitored evaluations, instead of cron: 30m, 4h, 1d, or 1h30m; at least a minute.",
            holds="text",
            examples=["4h"],
        ),
    ] = None
    accept: Annotated[
        Literal["first", "passed"],
        Option(
            "Runs without an index that become the baseline: the first, which remains it until you accept another with "
            "`assay accept`, or each that passed. A baseline that moves hides a slow decline."
        ),
    ] = "first"
    match: Annotated[
        str | None,
        Option(
            "Column by which rows of a run and of its baseline are matched. Default: their ids.",
            holds="text",
            examples=["user_input"],
        ),
    ] = None
    late_minutes: Annotated[
        float,
        Option(
            "Minutes after which the Prefect server reports a scheduled run that has not started or was not resumed.",
            ge=0.2,
            le=1440,
        ),
    ] = 15.0
    stale_days: Annotated[
        float,
        Option(
            "Days after which responses and contexts that have not changed are reported; 0 never reports them.",
            ge=0,
            allow_inf_nan=False,
        ),
    ] = 14.0
    growth: Annotated[
        float,
        Option(
            "Factor by which rows, tokens or the duration of a run may exceed the most of earlier runs before that is "
            "reported; 0 never reports it.",
            ge=0,
            allow_inf_nan=False,
        ),
    ] = 3.0
    prune_cron: Annotated[
        str | None,
        Option(
            "Cron expression for the removal of tables and answers that have not been used recently.",
            holds="text",
            examples=["0 3 * * 0"],
        ),
    ] = None
    keep_last_runs: Annotated[
        int | None,
        Option(
            "When pruning, number of the latest run folders to keep per deployment. Default: all.", ge=1, examples=[50]
        ),
    ] = None
    keep_runs_days: Annotated[
        float | None,
        Option(
            "When pruning, keep run folders that are younger than this many days. Default: all.",
            ge=0,
            allow_inf_nan=False,
            examples=[90],
        ),
    ] = None
    timezone: Annotated[str, Option("Time zone of the schedules.", holds="text", examples=["Europe/Berlin"])] = "UTC"
    gate: Annotated[
        GateChoice,
        Option(
            "Rules that a run must pass, or an alert is sent: a gate file, or its content.",
            holds="path",
            examples=[{"absolute": ["faithfulness.mean >= 0.8"], "coverage": {"paired_at_least": 0.9}}],
        ),
    ] = None
    baselines: Annotated[
        Annotated[str, AfterValidator(refuse_secrets)] | None,
        Option(
            "Folder or fsspec URL of accepted baselines. Default: ASSAY_HOME/baselines.",
            holds="address",
            examples=["s3://bucket/baselines"],
        ),
    ] = None
    heartbeat: Annotated[
        Annotated[str, AfterValidator(_check_heartbeat)] | None,
        Option(
            "URL to call after each finished run whose messages are delivered: env:NAME, block:NAME, or http(s) "
            "without a secret.",
            holds="secret",
            examples=["env:ASSAY_HEARTBEAT"],
        ),
    ] = None
    alerts: Annotated[
        AlertSettings,
        Option("Recipients of alerts.", examples=[{"webhook": "env:ASSAY_WEBHOOK"}]),
    ] = AlertSettings()

    @model_validator(mode="after")
    def _has_one_schedule(self) -> Self:
        if self.cron is not None and self.interval is not None:
            raise ValueError("cron and interval are two schedules; keep one")
        return self


class DeployOptions(OptionGroup, affects_scores=False):
    """The option for runs that are not started manually."""

    deploy: Annotated[
        DeploySettings,
        Option("Schedules, gate, baselines and alerts of runs that are not started manually.", holds="text"),
    ] = DeploySettings()
