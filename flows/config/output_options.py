"""Declare the options that say where results go, and what is recomputed."""

from string import Formatter
from typing import Annotated, Literal

from pydantic import AfterValidator, BeforeValidator, Field

from metric_core.stages import Stage
from tasks.options.grouping_options import GroupingOptions
from tasks.options.option import Flag, Option, OptionGroup
from tasks.options.sink_addresses import check_addresses, split_address
from tasks.options.slicing_options import SlicingOptions
from tasks.options.text_forms import list_from_text, split_commas, table_from_text
from tasks.runtime.credentials import refuse_secrets
from tasks.runtime.home import assay_home

METRICS_FILE_FIELDS = ("deployment", "index")
"""Placeholders in the name of a metrics file."""


def check_metrics_file(path: str) -> str:
    """Return a metrics file as it was written.

    Raises:
        ValueError: The file is a URL, or holds a placeholder that is not replaced.

    >>> check_metrics_file("/var/lib/node_exporter/assay-{deployment}-{index}.prom")
    '/var/lib/node_exporter/assay-{deployment}-{index}.prom'
    >>> check_metrics_file("assay-{source}.prom")
    Traceback (most recent call last):
    ValueError: the file name may hold {deployment} and {index}, got assay-{source}.prom
    """
    if "://" in path:
        raise ValueError(f"must be a file of the machine that executes the run, got {path}")
    folder, _, name = path.rpartition("/")
    try:
        found = {field for _, field, _, _ in Formatter().parse(name) if field is not None}
        Formatter().vformat(name, (), dict.fromkeys(METRICS_FILE_FIELDS, ""))
    except (ValueError, LookupError, AttributeError):
        found = {""}
    if not name or "{" in folder or not found.issubset(METRICS_FILE_FIELDS):
        raise ValueError(f"the file name may hold {{deployment}} and {{index}}, got {path}")
    return path


class TableStoreOptions(OptionGroup, affects_scores=False):
    """The option that says where stage tables are stored."""

    tables: Annotated[
        Annotated[str, AfterValidator(refuse_secrets)] | None,
        Option(
            "Folder or fsspec URL of the stage tables. Default: ASSAY_HOME/tables.",
            holds="address",
            examples=["s3://bucket/assay"],
        ),
    ] = None

    @property
    def tables_root(self) -> str:
        """The root of the table store."""
        return self.tables or str(assay_home() / "tables")


class OutputOptions(SlicingOptions, GroupingOptions, affects_scores=False):
    """Options for the run folder and its statistics, and for the use of earlier runs."""

    out: Annotated[
        str | None,
        Option(
            "Run folder. Default: runs/<time>-<source>.",
            holds="path",
            cli=Flag(long="--out", short="-o"),
            examples=["runs/nightly"],
        ),
    ] = None
    baseline: Annotated[
        str | None,
        Option(
            "Run folder of an earlier run: report which rows and means have changed since.",
            holds="path",
            cli="--baseline",
            examples=["runs/monday"],
        ),
    ] = None
    fail_on_failed: Annotated[
        float,
        Option(
            "Fail the run (exit code 8) if this share of a metric's cells failed; cells with nothing to measure do not "
            "count. Default: 1.",
            by_run=True,
            cli=Flag(long="--fail-on-failed", metavar="SHARE"),
            gt=0,
            le=1,
            allow_inf_nan=False,
            examples=[0.1],
        ),
    ] = 1.0
    metrics_file: Annotated[
        Annotated[str, AfterValidator(check_metrics_file)] | None,
        Option(
            "File for the figures of the latest finished run, in the text format of Prometheus. {deployment} and "
            "{index} in its name are replaced by the names of the deployment and the index, or by none.",
            holds="path",
            cli=Flag(long="--metrics-file", metavar="FILE"),
            examples=["/var/lib/node_exporter/assay-{deployment}-{index}.prom"],
        ),
    ] = None
    sinks: Annotated[
        Annotated[dict[str, str], BeforeValidator(table_from_text(split_address)), AfterValidator(check_addresses)],
        Option(
            "Servers that get the results of every finished run: name of a sink = address. otlp gets the scores as "
            "events, openinference as evaluations of spans, and an installed sink what its page says. What one does "
            "not accept, later runs send again.",
            holds="secret",
            cli=Flag(
                long="--sink",
                metavar="NAME=ADDRESS",
                repeats=True,
                help="Server that gets the results, such as mlflow=http://localhost:5000 or otlp=http://localhost:4318.",
            ),
            examples=[{"mlflow": "http://localhost:5000", "otlp": "http://localhost:4318"}],
        ),
    ] = Field(default_factory=dict)
    log_format: Annotated[
        Literal["text", "json"],
        Option(
            "Format of logs, warnings and errors on stderr: text, or a JSON object per line.",
            cli=Flag(long="--log-format", metavar="text|json"),
        ),
    ] = "text"
    refresh: Annotated[
        Annotated[tuple[Stage, ...], BeforeValidator(list_from_text(split_commas))],
        Option(
            "Stages to recompute, asking the judge again, even if their tables are stored.",
            by_run=True,
            cli=Flag(long="--refresh", metavar="STAGE,...", repeats=True, default=""),
            examples=[["verdicts"]],
        ),
    ] = ()
