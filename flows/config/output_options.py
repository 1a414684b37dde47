"""Declare the options that say where results go, and what is recomputed."""

from typing import Annotated

from pydantic import AfterValidator, BeforeValidator

from metric_core.stages import Stage
from tasks.options.grouping_options import GroupingOptions
from tasks.options.option import Flag, Option, OptionGroup
from tasks.options.text_forms import list_from_text, split_commas
from tasks.runtime.credentials import refuse_secrets


class TableStoreOptions(OptionGroup):
    """The option that says where stage tables are stored."""

    tables: Annotated[
        Annotated[str, AfterValidator(refuse_secrets)] | None,
        Option(
            "Folder or fsspec URL of the stage tables. Default: ASSAY_HOME/tables.",
            path=True,
            may_hold_secret=True,
            affects_scores=False,
            examples=["s3://bucket/assay"],
        ),
    ] = None


class OutputOptions(GroupingOptions):
    """Options for the run folder and its statistics, and for the use of earlier runs."""

    out: Annotated[
        str | None,
        Option(
            "Run folder. Default: runs/<time>-<source>.",
            path=True,
            may_hold_secret=False,
            affects_scores=False,
            cli=Flag(long="--out", short="-o"),
            examples=["runs/nightly"],
        ),
    ] = None
    baseline: Annotated[
        str | None,
        Option(
            "Run folder of an earlier run: report which rows have changed since.",
            path=True,
            may_hold_secret=False,
            affects_scores=False,
            cli="--baseline",
            examples=["runs/monday"],
        ),
    ] = None
    fail_on_failed: Annotated[
        float,
        Option(
            "Share of the cells of a metric from which on failed cells end the run as failed, with exit code 8; cells "
            "with nothing to measure do not count. Default: 1, when all cells of a metric failed.",
            path=False,
            may_hold_secret=False,
            affects_scores=False,
            cli=Flag(long="--fail-on-failed", metavar="SHARE"),
            gt=0,
            le=1,
            allow_inf_nan=False,
            examples=[0.1],
        ),
    ] = 1.0
    refresh: Annotated[
        Annotated[tuple[Stage, ...], BeforeValidator(list_from_text(split_commas))],
        Option(
            "Stages to recompute, asking the judge again, even if their tables are stored.",
            path=False,
            may_hold_secret=False,
            affects_scores=False,
            cli=Flag(long="--refresh", metavar="STAGE,...", repeats=True, default=""),
            examples=[["verdicts"]],
        ),
    ] = ()
