"""`assay questions`: write questions from an index, and keep those that its next version still answers."""

import json
from collections import Counter
from collections.abc import Iterator
from contextlib import nullcontext
from pathlib import Path
from typing import Annotated, Any

import typer

from deployments.cli._support.console import stderr, stdout
from deployments.cli._support.options import TRACES_OF, Json, split_names, with_config_except
from deployments.cli._support.print_document import print_table
from deployments.cli._support.progress_bars import stage_progress
from deployments.cli._support.run_lines import failure_lines
from deployments.cli._support.verb import VerbGroup
from flows.config.run_config import RunConfig
from metric_core.stages import Stage
from tasks.documents.blocks import Table, make_table
from tasks.index_questions.question_file import retired_file
from tasks.index_questions.update_questions import QuestionsOfIndex
from tasks.runtime.usage import StageUsage
from tasks.runtime.wording import shorten_path

_PLAIN = (
    "no language model wrote these questions: they are sentences of the index with a figure or a name asked for, and "
    "the titles of sections. They use the words of the index, so a search finds most evidence, but not that of a title "
    "which the text does not repeat; read them before you rely on them. With --judge MODEL@URL, a language model "
    "writes."
)
_MOST_DOCUMENTS = 10

_OF_ROWS = (
    "limit",
    "id_column",
    "on_bad_row",
    "empty_text",
    "missing_texts",
    "passage_separator",
    "conversations",
    "qrels",
    "query_id_column",
)
_OF_TRACES = tuple(f"{TRACES_OF}{name}" for name in ("since", "where", "deduplicate", "sample"))
_OF_SCORES = ("metrics", "follow_ups", "explain", "citation_pattern", "slices", "by", "fail_on_failed", "ask_again")
_OF_RUNS = ("out", "baseline", "name", "system_version", "history", "history_page", "metrics_file", "sinks", "refresh")
_WITHOUT_EFFECT = (*_OF_ROWS, *_OF_TRACES, *_OF_SCORES, *_OF_RUNS)

app = VerbGroup()

_EXAMPLES = """Examples:

\b
assay questions chunks.jsonl --out questions.jsonl --judge MODEL@http://localhost:8000/v1
assay questions chunks.parquet --out questions.jsonl --column-map body=retrieved_contexts --index-version 1.42.0
"""


@app.command(epilog=_EXAMPLES)
@with_config_except(*_WITHOUT_EFFECT)
def questions(
    config: RunConfig,
    out: Annotated[
        Path,
        typer.Option(
            "--out", "-o", metavar="FILE", help="File of the questions (.jsonl); it is updated.", show_default=False
        ),
    ],
    kinds: Annotated[
        list[str] | None,
        typer.Option(
            "--kinds",
            metavar="KIND,...",
            help="Kinds of questions. Default: all that the judge can write. Can be repeated.",
            show_default=False,
        ),
    ] = None,
    version: Annotated[
        str | None,
        typer.Option("--index-version", metavar="TEXT", help="Version of the index. Default: a digest of its chunks."),
    ] = None,
    retire_any: Annotated[
        bool,
        typer.Option(
            "--retire-any",
            help="Retire questions whose evidence is gone however many they are. Without it, more than a third of all "
            "is an error, as of a file with a part of the index.",
        ),
    ] = False,
    as_json: Json = False,
) -> None:
    """Write questions from an index, and keep them up to date."""
    from flows.write_questions import QuestionsRequest, write_questions_of_index

    request = QuestionsRequest(config, config, out, split_names(kinds) or None, version, retire_any)
    with nullcontext() if as_json else stage_progress([Stage.QUESTIONS]):
        result = write_questions_of_index(request)
    if as_json:
        stdout.print_json(json.dumps(_content(result)))
        return
    print_table(stdout, _table(result))
    for line in _lines(result):
        stdout.print(line)
    retired = f"; retired ones: {shorten_path(retired_file(out))}" if result.retired else ""
    stdout.print(f"wrote {shorten_path(out)}{retired}")
    if result.is_plain:
        stderr.print(_PLAIN, style="yellow")


def _table(result: QuestionsOfIndex) -> Table:
    new = Counter(question.kind for question in result.questions[len(result.questions) - result.new :])
    total = Counter(question.kind for question in result.questions)
    retired = Counter(question.kind for question, _ in result.retired)
    rejected: Counter[str] = Counter()
    for (kind, _), count in result.rejected.items():
        rejected[kind] += count
    kinds = dict.fromkeys((*total, *retired, *rejected))
    rows = [
        (kind, str(total[kind] - new[kind]), str(new[kind]), str(retired[kind]), str(rejected[kind])) for kind in kinds
    ]
    return make_table(("questions", "kept", "new", "retired", "rejected"), rows)


def _lines(result: QuestionsOfIndex) -> Iterator[str]:
    usage = result.usage
    if usage.questions:
        yield (
            f"asked the judge to write about {result.asked_about:,} of {result.chunks:,} chunks; {usage.questions:,} "
            f"questions to the judge in all, {usage.stored:,} of them cached"
        )
    for (kind, reason), count in sorted(result.rejected.items()):
        yield f"rejected, {kind}: {reason} ({count:,})"
    for reason, count in Counter(reason.partition(":")[0] for _, reason in result.retired).items():
        yield f"retired: {reason} ({count:,})"
    yield from failure_lines(StageUsage(failed=dict(result.failed)))
    yield from (f"not checked, {what}" for what in result.unchecked)
    without = [document for document, count in result.documents.items() if not count]
    yield f"{len(result.documents) - len(without):,} of {len(result.documents):,} documents have a question"
    if without:
        more = (
            f" and {len(without) - _MOST_DOCUMENTS:,} more (--json lists all)" if len(without) > _MOST_DOCUMENTS else ""
        )
        yield f"documents without one: {', '.join(without[:_MOST_DOCUMENTS])}{more}"


def _content(result: QuestionsOfIndex) -> dict[str, Any]:
    return {
        "questions": len(result.questions),
        "new": [question.id for question in result.questions[len(result.questions) - result.new :]],
        "retired": {question.id: reason for question, reason in result.retired},
        "rejected": [
            {"kind": kind, "reason": reason, "count": count} for (kind, reason), count in result.rejected.items()
        ],
        "failed": dict(result.failed),
        "unchecked": list(result.unchecked),
        "chunks": result.chunks,
        "asked_about": result.asked_about,
        "documents": dict(result.documents),
        "is_plain": result.is_plain,
        "usage": result.usage.model_dump(
            mode="json", include={"questions", "stored", "prompt_tokens", "output_tokens"}
        ),
    }
