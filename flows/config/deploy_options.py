"""Declare the options of runs that are not started by hand: schedule, gate, baselines and alerts."""

import re
from datetime import timedelta
from typing import Annotated, Literal, Self, TypeAlias

from pydantic import AfterValidator, model_validator

from flows.config.event_options import EventSettings
from flows.config.gate_file import KEPT_AT_LEAST, CoverageSettings, GateChoice, GateSettings, RegressionSettings
from tasks.options.option import Option, OptionGroup
from tasks.runtime.credentials import check_reference, refuse_secrets

_INTERVAL = re.compile(r"(?:(\d{1,6})d)?(?:(\d{1,6})h)?(?:(\d{1,6})m)?")
_SHORTEST, _LONGEST = timedelta(minutes=1), timedelta(days=366)
_ADDRESS = re.compile(r"[^\s@,;:<>()\[\]\"\\]+@[^\s@,;:<>()\[\]\"\\]+")


def parse_interval(text: str) -> timedelta:
    """Return the length of an interval.

    Args:
        text: Days, hours and minutes, such as `4h` or `1d12h`.

    Raises:
        ValueError: The text is something else, or the interval is shorter than a minute or longer than 366 days.

    >>> str(parse_interval("1h30m"))
    '1:30:00'
    """
    match = _INTERVAL.fullmatch(text)
    days, hours, minutes = (int(number or 0) for number in match.groups()) if match else (0, 0, 0)
    length = timedelta(days=days, hours=hours, minutes=minutes)
    if not _SHORTEST <= length <= _LONGEST:
        raise ValueError(
            "an interval must be days, hours and minutes, such as 30m, 4h, 1d or 1h30m, between a minute and 366 days, "
            f"got {text!r}"
        )
    return length


def _check_interval(text: str) -> str:
    parse_interval(text)
    return text


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


def _check_address(address: str) -> str:
    """Return an e-mail address after checking its form, because it becomes a part of a message's header."""
    if _ADDRESS.fullmatch(address) is None:
        raise ValueError(f"an e-mail address must have the form name@host, got {address!r}")
    return address


Address: TypeAlias = Annotated[str, AfterValidator(_check_address)]


class EmailSettings(OptionGroup):
    """Mailbox that alerts are sent to."""

    server: Annotated[
        Annotated[str, AfterValidator(check_reference)],
        Option(
            "Reference to the URL of an SMTP server, env:NAME or block:NAME: smtp://USER:PASSWORD@HOST or smtps://.",
            path=False,
            may_hold_secret=True,
            affects_scores=False,
            examples=["env:ASSAY_SMTP"],
        ),
    ]
    to: Annotated[
        tuple[Address, ...],
        Option(
            "Addresses of the recipients.",
            path=False,
            may_hold_secret=False,
            affects_scores=False,
            min_length=1,
            examples=[["team@example.com"]],
        ),
    ]
    sender: Annotated[
        Address,
        Option(
            "Address of the sender.",
            path=False,
            may_hold_secret=False,
            affects_scores=False,
            examples=["assay@example.com"],
        ),
    ]


class AlertSettings(OptionGroup):
    """Recipients of alerts about runs that were not accepted, that got worse, or that could not be finished."""

    webhook: Annotated[
        Annotated[str, AfterValidator(check_reference)] | None,
        Option(
            "Reference to the URL that alerts are posted to as JSON: env:NAME, or block:NAME for a Secret block.",
            path=False,
            may_hold_secret=True,
            affects_scores=False,
        ),
    ] = None
    file: Annotated[
        str | None,
        Option(
            "File of alerts, one JSON object per line. Default: ASSAY_HOME/alerts.jsonl if no other target is set.",
            path=True,
            may_hold_secret=False,
            affects_scores=False,
        ),
    ] = None
    block: Annotated[
        str | None,
        Option(
            "Notification block of the Prefect server, as type/name.",
            path=False,
            may_hold_secret=False,
            affects_scores=False,
            examples=["slack-webhook/rag"],
        ),
    ] = None
    email: Annotated[
        EmailSettings | None,
        Option(
            "Mailbox that alerts are sent to: its SMTP server, recipients and sender.",
            path=False,
            may_hold_secret=True,
            affects_scores=False,
            examples=[{"server": "env:ASSAY_SMTP", "to": ["team@example.com"], "sender": "assay@example.com"}],
        ),
    ] = None
    link: Annotated[
        Annotated[str, AfterValidator(refuse_secrets)] | None,
        Option(
            "URL of a run folder for links in alerts, with {folder} or {name} in it.",
            path=False,
            may_hold_secret=True,
            affects_scores=False,
            examples=["https://reports.example/{name}"],
        ),
    ] = None

    @property
    def references(self) -> tuple[str, ...]:
        """The references to the secrets of the recipients."""
        email = None if self.email is None else self.email.server
        return tuple(each for each in (self.webhook, email) if each is not None)


class DeploySettings(EventSettings):
    """Options of `assay serve` and `assay deploy`."""

    cron: Annotated[
        str | None,
        Option(
            "Cron expression for the monitored evaluations. Default: no schedule.",
            path=False,
            may_hold_secret=False,
            affects_scores=False,
            examples=["0 6 * * *"],
        ),
    ] = None
    interval: Annotated[
        Annotated[str, AfterValidator(_check_interval)] | None,
        Option(
            "Interval between monitored evaluations, instead of cron: 30m, 4h, 1d, or 1h30m; at least a minute.",
            path=False,
            may_hold_secret=False,
            affects_scores=False,
            examples=["4h"],
        ),
    ] = None
    accept: Annotated[
        Literal["first", "passed"],
        Option(
            "Runs about no index that become the baseline: the first, which stays it until you accept another with "
            "`assay accept`, or each that passed. A baseline that moves hides a slow decline.",
            path=False,
            may_hold_secret=False,
            affects_scores=False,
        ),
    ] = "first"
    match: Annotated[
        str | None,
        Option(
            "Column by which rows of a run and of its baseline are matched. Default: their ids.",
            path=False,
            may_hold_secret=False,
            affects_scores=False,
            examples=["user_input"],
        ),
    ] = None
    late_minutes: Annotated[
        float,
        Option(
            "Minutes after which the Prefect server reports a scheduled run that has not started or was not resumed.",
            path=False,
            may_hold_secret=False,
            affects_scores=False,
            ge=0.2,
            le=1440,
        ),
    ] = 15.0
    stale_days: Annotated[
        float,
        Option(
            "Days after which responses and contexts that have not changed are reported; 0 never reports them.",
            path=False,
            may_hold_secret=False,
            affects_scores=False,
            ge=0,
            allow_inf_nan=False,
        ),
    ] = 14.0
    prune_cron: Annotated[
        str | None,
        Option(
            "Cron expression for the removal of tables and answers that have not been used recently.",
            path=False,
            may_hold_secret=False,
            affects_scores=False,
            examples=["0 3 * * 0"],
        ),
    ] = None
    keep_last_runs: Annotated[
        int | None,
        Option(
            "When pruning, number of the latest run folders to keep per deployment. Default: all.",
            path=False,
            may_hold_secret=False,
            affects_scores=False,
            ge=1,
            examples=[50],
        ),
    ] = None
    keep_runs_days: Annotated[
        float | None,
        Option(
            "When pruning, keep run folders that are younger than this many days. Default: all.",
            path=False,
            may_hold_secret=False,
            affects_scores=False,
            ge=0,
            allow_inf_nan=False,
            examples=[90],
        ),
    ] = None
    history_keep_last: Annotated[
        int | None,
        Option(
            "When pruning, number of the latest runs to keep in the history per evaluation. Default: all.",
            path=False,
            may_hold_secret=False,
            affects_scores=False,
            ge=1,
            examples=[1000],
        ),
    ] = None
    history_keep_days: Annotated[
        float | None,
        Option(
            "When pruning, keep runs in the history that are younger than this many days. Default: all.",
            path=False,
            may_hold_secret=False,
            affects_scores=False,
            ge=0,
            allow_inf_nan=False,
            examples=[730],
        ),
    ] = None
    timezone: Annotated[
        str,
        Option(
            "Time zone of the schedules.",
            path=False,
            may_hold_secret=False,
            affects_scores=False,
            examples=["Europe/Berlin"],
        ),
    ] = "UTC"
    gate: Annotated[
        GateChoice,
        Option(
            "Rules that a run must pass, or people are told: a gate file, or its content.",
            path=True,
            may_hold_secret=False,
            affects_scores=False,
            examples=[{"absolute": ["faithfulness.mean >= 0.8"], "coverage": {"paired_at_least": 0.9}}],
        ),
    ] = None
    baselines: Annotated[
        Annotated[str, AfterValidator(refuse_secrets)] | None,
        Option(
            "Folder or fsspec URL of accepted baselines. Default: ASSAY_HOME/baselines.",
            path=True,
            may_hold_secret=True,
            affects_scores=False,
            examples=["s3://bucket/baselines"],
        ),
    ] = None
    alerts: Annotated[
        AlertSettings,
        Option(
            "Recipients of alerts.",
            path=False,
            may_hold_secret=True,
            affects_scores=False,
            examples=[{"webhook": "env:ASSAY_WEBHOOK"}],
        ),
    ] = AlertSettings()

    @model_validator(mode="after")
    def _has_one_schedule(self) -> Self:
        if self.cron is not None and self.interval is not None:
            raise ValueError("cron and interval are two schedules; keep one")
        return self


class DeployOptions(OptionGroup):
    """The option for runs that are not started by hand."""

    deploy: Annotated[
        DeploySettings,
        Option(
            "Schedules, gate, baselines and alerts of runs that are not started by hand.",
            path=False,
            may_hold_secret=False,
            affects_scores=False,
        ),
    ] = DeploySettings()
