"""Declare the options of the data: names of columns, number of rows, and treatment of bad rows."""

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BeforeValidator, Field, ValidationError

from metric_core.columns import COLUMN_ALIASES, COLUMNS, MESSAGES
from metric_core.errors import ConfigError
from tasks.options.conversation_options import ConversationOptions
from tasks.options.option import Flag, Option, OptionGroup
from tasks.options.text_forms import list_from_text, split_commas, table_from_text
from tasks.options.trace_options import TraceOptions
from tasks.plugins.load_object import Group, installed_names
from tasks.runtime.credentials import refuse_secrets
from tasks.runtime.wording import quote_names, suggest_nearest

_MISSING_TEXTS = ("nan", "NaN", "None", "null", "NULL", "NA", "N/A", "n/a", "<NA>", "#N/A", "NaT")
"""Texts that pandas and spreadsheets write for a missing value."""


ONE_PASSAGE = "none"
"""Value of `passage_separator` with which a text is one passage."""

TRACES = "traces:"
"""Prefix of the address of files with traces, of which the option `traces` selects some."""


class JudgmentOptions(OptionGroup, affects_scores=True):
    """The options that say where the relevance judgments of the rows come from."""

    qrels: Annotated[
        Annotated[str, AfterValidator(refuse_secrets)] | None,
        Option(
            "File of relevance judgments: TREC qrels (QUERY 0 PASSAGE GRADE), the table of BEIR, or qrels that were "
            "exported. They become the column relevance_judgments of the rows.",
            holds="address",
            cli=Flag(
                long="--qrels",
                metavar="PATH",
                help="File of relevance judgments: TREC qrels, the table of BEIR, or exported qrels.",
            ),
            examples=["judgments/qrels.txt"],
        ),
    ] = None
    query_id_column: Annotated[
        str | None,
        Option(
            "Column of the data with the ids that queries have in the file of qrels. Default: query_id or qid, else "
            "the row id.",
            holds="text",
            cli=Flag(
                long="--query-id-column",
                metavar="NAME",
                help="Column with the ids of the queries in qrels. Default: query_id, qid or row id.",
            ),
            examples=["topic"],
        ),
    ] = None
    chunks: Annotated[
        Annotated[str, AfterValidator(refuse_secrets)] | None,
        Option(
            "File or folder with all chunks of the index: id and text, and as far as known document, start and end. "
            "Judgments of texts are carried to these chunks.",
            holds="address",
            cli=Flag(
                long="--chunks",
                metavar="PATH",
                help="File with all chunks of the index, to which judgments of texts are carried.",
            ),
            examples=["index/chunks.parquet"],
        ),
    ] = None


def split_kind(source: str) -> tuple[str, str]:
    """Return the prefix of an address that names its reader, if a package has installed one, and the path.

    >>> split_kind("traces:spans.jsonl"), split_kind("answers.jsonl")
    (('traces:', 'spans.jsonl'), ('', 'answers.jsonl'))
    """
    kind, separator, path = source.partition(":")
    if not separator or path.startswith("//") or not kind.isidentifier() or kind not in installed_names(Group.READERS):
        return "", source
    return f"{kind}:", path


def split_pairs(text: str) -> list[tuple[str, str]]:
    """Return the pairs of `a=b,c=d`."""
    pairs = [part.partition("=") for part in split_commas(text)]
    if any(not equals for _, equals, _ in pairs):
        raise ValueError(
            "expected data_column=sample_column, comma-separated; names that contain a comma or an equals sign are "
            'given as JSON, {"data, column": "sample_column"}'
        )
    return [(name.strip(), target.strip()) for name, _, target in pairs]


def _read_separator(text: str) -> str:
    r"""Return a separator with the line breaks and tabs that it spells, as shells cannot easily pass them.

    >>> _read_separator(r"\n\n")
    '\n\n'
    """
    if not text:
        raise ValueError(
            f"the separator is empty: wanted a text such as '|', or {ONE_PASSAGE!r} for one passage a text"
        )
    return text.replace("\\n", "\n").replace("\\t", "\t")


class RowOptions(TraceOptions, ConversationOptions, JudgmentOptions, affects_scores=True):
    """Options that say how the rows of the data are read."""

    column_map: Annotated[
        Annotated[dict[str, str], BeforeValidator(table_from_text(split_pairs))],
        Option(
            "Column of the data = column of a sample, where the names differ; a path leads into nested columns.",
            holds="text",
            cli=Flag(
                long="--column-map",
                metavar="DATA=SAMPLE,...",
                repeats=True,
                help="Columns by other names, or paths to them: prompt=user_input, 'docs[*].text=retrieved_contexts'.",
            ),
            examples=[{"prompt": "user_input"}],
        ),
    ] = Field(default_factory=dict)
    id_column: Annotated[
        str | None,
        Option(
            "Column with the ids of the rows. Default: row_id or id, else a digest of the content; an empty "
            "name takes the digest in any case.",
            holds="text",
            cli=Flag(
                long="--id-column",
                help="Column with the ids of the rows. Default: row_id or id, else made from the content.",
            ),
            examples=["ticket"],
        ),
    ] = None
    limit: Annotated[
        int | None,
        Option(
            "Read only this many rows from the start, including bad ones.",
            by_run=True,
            cli="--limit",
            ge=1,
            examples=[100],
        ),
    ] = None
    on_bad_row: Annotated[
        Literal["fail", "skip"],
        Option(
            "Stop at bad rows (fail), or leave them out and count them (skip). Of traces, they are always left out.",
            by_run=True,
            cli=Flag(long="--on-bad-row", metavar="fail|skip"),
        ),
    ] = "fail"
    empty_text: Annotated[
        Literal["missing", "keep", "bad"],
        Option(
            "A blank text counts as a missing value, with which only the metrics that need it are undefined (missing), "
            "or is evaluated (keep), or makes its row bad, as a missing value then does, if a metric needs it (bad).",
            by_run=True,
            cli=Flag(
                long="--empty-text",
                metavar="missing|keep|bad",
                help="A blank text counts as a missing value (missing), is evaluated (keep), or makes its row bad, as "
                "a missing value then does (bad).",
            ),
        ),
    ] = "missing"
    missing_texts: Annotated[
        Annotated[tuple[str, ...], BeforeValidator(list_from_text(split_commas))],
        Option(
            "Texts that mean a missing value in CSV and TSV files.",
            holds="text",
            cli=Flag(long="--missing-texts", metavar="TEXT,...", default=",".join(_MISSING_TEXTS), repeats=True),
            examples=[["nan", "-"]],
        ),
    ] = _MISSING_TEXTS

    passage_separator: Annotated[
        Annotated[str, AfterValidator(_read_separator)] | None,
        Option(
            "Text between the items where a column of passages, or of their ids, is plain text; none reads the text as "
            "one passage. Default: such a text makes its row bad.",
            holds="text",
            cli=Flag(
                long="--passage-separator",
                metavar="TEXT|none",
                help="Text between passages that are plain text in one cell, or none: the text is one passage.",
            ),
            examples=["|"],
        ),
    ] = None
    redact: Annotated[
        str | None,
        Option(
            "Function that redacts a text, as module:function or by its entry point: applied to all texts of a row "
            "before anything is stored or sent, also to passages from an index.",
            holds="text",
            cli=Flag(
                long="--redact",
                metavar="MODULE:FUNCTION",
                help="Function that redacts each text of the data before anything is stored or sent.",
            ),
            examples=["privacy:redact"],
        ),
    ] = None


class SourceAddress(OptionGroup, affects_scores=True):
    """The option that says which data are evaluated."""

    source: Annotated[
        Annotated[str, AfterValidator(refuse_secrets)] | None,
        Option(
            "The data: a file (JSONL, JSON, CSV, Parquet, Arrow), a folder of files, a pattern (logs/*.jsonl), "
            "a datasets folder, an fsspec URL or hub:owner/name; or traces:PATH, traces of OpenTelemetry, Langfuse, "
            "LangSmith or Phoenix.",
            holds="address",
            cli=Flag(
                long="",
                metavar="SOURCE|CONFIG",
                help="Data (JSONL, JSON, CSV, Parquet or Arrow: a file, a folder, a quoted pattern such as "
                "'logs/*.jsonl', an fsspec URL; a datasets folder; hub:owner/name; traces:PATH) or a configuration "
                "file (.toml, .yaml).",
            ),
        ),
    ] = None


class DataOptions(RowOptions, SourceAddress):
    """Options that say which data are evaluated, and how their rows are read."""


class SourceOptions(RowOptions):
    """Options for reading a source.

    Args:
        batch_rows: Number of rows per table, at least 1; it bounds the number of rows in memory.

    Raises:
        ConfigError: `column_map` names a sample column that does not exist or names one twice; a number below 1.
    """

    only_options = False

    batch_rows: int = Field(2000, ge=1)

    def __init__(self, **values: Any) -> None:
        try:
            super().__init__(**values)
        except ValidationError as error:
            first = error.errors(include_url=False)[0]
            wanted = f"must be at least {first['ctx']['ge']}" if "ge" in first.get("ctx", {}) else first["msg"]
            raise ConfigError(f"{first['loc'][0]} {wanted}, got {first['input']!r}") from error
        _check_column_map(self.column_map)


def _check_column_map(column_map: Mapping[str, str]) -> None:
    sources: dict[str, str] = {}
    for source, target in column_map.items():
        if target not in {*COLUMNS, MESSAGES}:
            raise ConfigError(_unknown_target(source, target))
        if target in sources:
            both = quote_names([sources[target], source])
            raise ConfigError(f"column_map names {target!r} for two columns, {both}; keep one of them")
        sources[target] = source


def _unknown_target(source: str, target: str) -> str:
    message = f"column_map maps {source!r} to {target!r}, which is not a column of a sample. "
    if target in ("row_id", "id"):
        return message + f"To take the ids of the rows from it, set id_column to {source!r}."
    if source in COLUMNS:
        return message + f"The name in the data comes first: {{{target!r}: {source!r}}}."
    suggestion = COLUMN_ALIASES.get(target) or suggest_nearest(target, COLUMNS)
    return message + (f"Did you mean {suggestion!r}?" if suggestion else f"There are: {quote_names(COLUMNS)}.")
