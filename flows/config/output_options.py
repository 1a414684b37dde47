"""Declare the options that say where results go, and what is recomputed."""

import json
from typing import Annotated, Any

from pydantic import AfterValidator, BeforeValidator

from metric_core.stages import Stage
from tasks.options.option import Flag, Option, OptionGroup
from tasks.runtime.credentials import refuse_secrets


def _split_names(value: Any) -> Any:
    """Return a list given as `claims,verdicts` or as JSON."""
    if not isinstance(value, str):
        return value
    if value.lstrip().startswith("["):
        return json.loads(value)
    return [part.strip() for part in value.split(",") if part.strip()]


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


class OutputOptions(OptionGroup):
    """Options for the run folder, and for the use of earlier runs."""

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
    refresh: Annotated[
        Annotated[tuple[Stage, ...], BeforeValidator(_split_names)],
        Option(
            "Stages to recompute, asking the judge again, even if their tables are stored.",
            path=False,
            may_hold_secret=False,
            affects_scores=False,
            cli=Flag(long="--refresh", metavar="STAGE,...", default=""),
            examples=[["verdicts"]],
        ),
    ] = ()
