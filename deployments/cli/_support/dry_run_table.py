"""Show what a dry run found: per stage the rows that are reused and the questions to the judge."""

from collections.abc import Iterator
from dataclasses import asdict
from typing import Any

from deployments.cli._support.console import stdout
from deployments.cli._support.print_document import print_table
from flows.dry_run.dry_run_result import DryRun, StageDryRun
from tasks.documents.blocks import make_table


def stage_content(stage: StageDryRun) -> dict[str, Any]:
    """Return the counts of a stage for JSON."""
    rows = {"kept": stage.kept, "missing": stage.missing, "unknown": stage.unknown}
    return {"rows": rows, "judge": {**asdict(stage.tally), "certainty": stage.certainty} if stage.judged else None}


def print_dry_run(dry_run: DryRun, recomputed: int | None = None) -> None:
    """Print the counts of each stage, and the questions to each judge.

    Args:
        dry_run: The dry run.
        recomputed: Number of rows that a rerun recomputes; None for a run.
    """
    numbers = ("reused", "questions", "cached", "to ask", "tokens in", "out")
    cells = [
        (
            str(stage.stage),
            f"{stage.kept:,} of {dry_run.rows:,}" + ("?" if stage.unknown else ""),
            *(_counts(stage) if stage.judged else ("-",) * 5),
            str(stage.certainty) if stage.certainty != "exact" else "",
        )
        for stage in dry_run.stages
    ]
    rows = f"{dry_run.rows:,} row{'s' * (dry_run.rows != 1)}"
    chosen = "" if recomputed is None else f", of which {recomputed:,} would be recomputed"
    stdout.print(f"{rows}{chosen}; reused rows per stage, and questions to the judge:")
    print_table(stdout, make_table(("stage", *numbers, ""), cells, numbers))
    if any(stage.unknown for stage in dry_run.stages):
        stdout.print("?: not known before the earlier stages have run")
    for found in dry_run.of_findings.values():
        if found is not None:
            stdout.print(found.line)
    tally = dry_run.tally
    stdout.print(
        f"The judge would be asked {dry_run.certainty.qualifier}{tally.asked:,} questions in {tally.requests:,} "
        f"requests: about {tally.prompt_tokens:,} tokens in, {tally.output_tokens:,} out",
    )
    for line in _judge_lines(dry_run):
        stdout.print(line)


def _judge_lines(dry_run: DryRun) -> Iterator[str]:
    """Yield a line for each judge of a run with several."""
    by_judge = dry_run.by_judge
    for name, tally in by_judge.items() if len(by_judge) > 1 else ():
        kinds = ", ".join(kind.replace("_", " ") for kind in dry_run.judges.get(name, ()))
        cost = (
            f" in {tally.requests:,} requests, about {tally.prompt_tokens:,} tokens in, {tally.output_tokens:,} out"
            if tally.requests
            else ""
        )
        yield f"- {name}: {tally.asked:,} of {tally.questions:,} questions to ask{cost} ({kinds})"
    if dry_run.spared:
        yield f"The cheaper judge is expected to answer {dry_run.spared:,} of its questions alone."


def _counts(stage: StageDryRun) -> tuple[str, ...]:
    tally = stage.tally
    counts = (tally.questions, tally.stored, tally.asked, tally.prompt_tokens, tally.output_tokens)
    return tuple(f"{count:,}" for count in counts)
