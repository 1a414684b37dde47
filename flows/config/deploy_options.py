"""What a configuration says about runs that nobody starts by hand: when, held against what, and who hears of it."""

from pathlib import Path
from typing import Annotated, Any, Self

from pydantic import AfterValidator, BeforeValidator, Field, model_validator

from flows.config.gate_file import GateSettings, RegressionSettings, load_gate
from tasks.options.model_options import Settings
from tasks.runtime.credentials import is_reference, refuse_secrets

_LONGEST_WAIT = 600.0
_LEAST_QUIETS = 4


def _read_gate(value: Any) -> Any:
    """The path of a gate file -> its rules, so that a deployment has them wherever it runs."""
    return load_gate(Path(value)) if isinstance(value, str) else value


def default_gate() -> GateSettings:
    """The gate where none is named: no metric is worse than in the baseline by more than 0.05, beyond chance."""
    return GateSettings(regression=(RegressionSettings(max_drop=0.05, metrics=None),), inconclusive="passed")


class AlertSettings(Settings):
    """Who is told that a version of an index was not accepted, or could not be evaluated.

    Args:
        webhook: where the URL is that alerts are posted to, as JSON: `env:NAME` or `block:NAME`.
        file: a file that each alert is appended to as a line of JSON.
        block: a notification block of the Prefect server, as `type/name`.
        link: how a run folder is seen from elsewhere: a URL with `{folder}` or `{name}` in it.
    """

    webhook: Annotated[str, AfterValidator(is_reference)] | None = Field(
        None, description="where the URL for alerts is: env:NAME, or block:NAME for a Secret block"
    )
    file: str | None = Field(
        None, description="file of alerts, one a line; default ASSAY_HOME/alerts.jsonl if nothing else is named"
    )
    block: str | None = Field(
        None, description="notification block of the Prefect server", examples=["slack-webhook/rag"]
    )
    link: Annotated[str, AfterValidator(refuse_secrets)] | None = Field(
        None, description="URL of a run folder, for links in alerts", examples=["https://reports.example/{name}"]
    )


class DeploySettings(Settings):
    """What `assay serve` and `assay deploy` make of a configuration.

    Args:
        cron: when the source is evaluated, as a cron expression; without it, only when asked.
        prune_cron: when what nothing has used for long is dropped.
        timezone: of both.
        index: the indexes whose events are taken, with `*` as a wildcard.
        quiet_seconds: an event waits so long for a later one of its index; a burst of events is one run.
        longest_wait_seconds: an event waits at most so long, however long its burst.
        gate: the rules that a version must keep to be accepted: a gate file, or its content.
        baselines: folder or fsspec URL of accepted baselines.
        alerts: who is told.
    """

    cron: str | None = Field(None, description="when the source is evaluated", examples=["0 6 * * *"])
    prune_cron: str | None = Field(
        None, description="when what nothing has used for long is dropped", examples=["0 3 * * 0"]
    )
    timezone: str = Field("UTC", description="time zone of the schedules", examples=["Europe/Berlin"])
    index: str = Field(
        "*",
        pattern=r"^[A-Za-z0-9*][A-Za-z0-9._*-]*$",
        description="indexes whose events are taken; * stands for any characters",
    )
    quiet_seconds: float = Field(
        10.0, ge=10, le=3600, description="an event of an index waits so long for a later one; a burst is one run"
    )
    longest_wait_seconds: float | None = Field(
        None,
        le=86400,
        description="an event waits at most so long, even if others keep coming; default 600, or four times "
        "quiet_seconds where that is longer",
        examples=[900],
    )
    gate: Annotated[GateSettings, BeforeValidator(_read_gate)] | None = Field(
        None,
        description="rules that a version must keep to be accepted: a gate file, or its content",
        examples=[{"absolute": ["faithfulness.mean >= 0.8"]}],
    )
    baselines: Annotated[str, AfterValidator(refuse_secrets)] | None = Field(
        None,
        description="folder or fsspec URL of accepted baselines; default ASSAY_HOME/baselines",
        examples=["s3://bucket/baselines"],
    )
    alerts: AlertSettings = Field(
        AlertSettings(), description="who is told what was not accepted", examples=[{"webhook": "env:ASSAY_WEBHOOK"}]
    )

    @property
    def longest_wait(self) -> float:
        """Seconds that an event waits at most.

        >>> DeploySettings().longest_wait, DeploySettings(quiet_seconds=300).longest_wait
        (600.0, 1200.0)
        """
        if self.longest_wait_seconds is not None:
            return self.longest_wait_seconds
        return max(_LONGEST_WAIT, _LEAST_QUIETS * self.quiet_seconds)

    @model_validator(mode="after")
    def _leaves_time_to_be_quiet(self) -> Self:
        least = _LEAST_QUIETS * self.quiet_seconds
        if self.longest_wait < least:
            raise ValueError(
                f"longest_wait_seconds must be at least four times quiet_seconds, here {least:g}, or an ordinary burst "
                "would be cut in pieces"
            )
        return self
