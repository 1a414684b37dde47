"""`assay compare`: compare a run with a baseline, and apply a gate in continuous integration."""

import json
from pathlib import Path
from typing import Annotated

import typer

from deployments.cli._support.console import stderr, stdout
from deployments.cli._support.options import Json, by_option, seed_option, slice_option, split_names
from deployments.cli._support.print_document import print_document
from deployments.cli._support.verb import VerbGroup
from flows.config.gate_file import load_gate
from flows.results.gated_comparison import CompareOptions, apply_gate, compare_runs
from metric_core.errors import ConfigError, RunFolderError
from metric_core.statistics.resampling import SEED
from tasks.comparison.row_matching import match_by_questions
from tasks.comparison.run_comparison import RunComparison, comparison_to_dict
from tasks.comparison.run_pair import Matching
from tasks.reports.comparison.comparison_document import comparison_document, comparison_markdown
from tasks.reports.comparison.comparison_page import comparison_page
from tasks.reports.comparison.junit import gate_junit_xml
from tasks.runtime.atomic_files import write_output
from tasks.runtime.writable import check_file

app = VerbGroup()

_EXAMPLES = """Examples:

\b
assay compare runs/first runs/second --html comparison.html
assay compare runs/first runs/second --match user_input
assay compare runs/first runs/second --gate gate.toml --junit gate.xml
"""

GATE_CODES = {"passed": 0, "failed": 10, "inconclusive": 11}
"""Exit codes of the outcomes of a gate."""

First = Annotated[
    Path, typer.Argument(metavar="A", help="Run folder of the baseline; without B, of the run to check with --gate.")
]
Second = Annotated[
    Path | None, typer.Argument(metavar="B", help="Run folder of the run to compare.", show_default=False)
]
GateFile = Annotated[
    Path | None,
    typer.Option(
        "--gate",
        envvar="ASSAY_COMPARE_GATE",
        help="Gate file (TOML) to check the run against.",
    ),
]
By = Annotated[str | None, by_option("ASSAY_COMPARE_BY")]
Slices = Annotated[list[str] | None, slice_option("ASSAY_COMPARE_SLICE")]
Match = Annotated[
    str | None,
    typer.Option(
        "--match", envvar="ASSAY_COMPARE_MATCH", help="Column to match rows by. Default: id, or the question."
    ),
]
Seed = Annotated[int | None, seed_option("ASSAY_COMPARE_SEED")]
Top = Annotated[
    int,
    typer.Option("--top", envvar="ASSAY_COMPARE_TOP", min=0, help="Number of most changed rows to show."),
]
AllowDifferent = Annotated[
    bool,
    typer.Option(
        "--allow-different",
        envvar="ASSAY_COMPARE_ALLOW_DIFFERENT",
        help="Apply regression rules to runs that are not like for like.",
    ),
]
WithoutBaseline = Annotated[
    bool,
    typer.Option(
        "--without-baseline",
        envvar="ASSAY_COMPARE_WITHOUT_BASELINE",
        help="Check a run that has no baseline yet: leave out the rules that need one.",
    ),
]
Markdown = Annotated[
    Path | None, typer.Option("--markdown", help="Write the comparison as Markdown, for a pull request.")
]
Html = Annotated[
    Path | None,
    typer.Option("--html", help="Write the comparison as one offline page, with the evidence of both runs."),
]
Junit = Annotated[Path | None, typer.Option("--junit", help="Write the gate's rules as JUnit XML.")]


@app.command(epilog=_EXAMPLES)
def compare(
    a: First,
    b: Second = None,
    gate: GateFile = None,
    by: By = None,
    slices: Slices = None,
    match: Match = None,
    seed: Seed = None,
    top: Top = 5,
    allow_different: AllowDifferent = False,
    without_baseline: WithoutBaseline = False,
    as_json: Json = False,
    markdown: Markdown = None,
    html: Html = None,
    junit: Junit = None,
) -> None:
    """Compare two runs row by row, or check a run against a gate.

    Exit codes with --gate: 0 passed, 10 failed, 11 inconclusive, 12 refused because
    the runs are not like for like. `assay docs compare` explains the numbers, `assay docs gates` gate files.
    """
    if junit is not None and gate is None:
        raise ConfigError("--junit writes the rules of a gate: name a gate file with --gate")
    if html is not None and b is None:
        raise ConfigError("--html compares two runs: name a second run folder")
    if without_baseline and b is not None:
        raise ConfigError("--without-baseline checks one run by itself: leave out the option or the baseline")
    for path in filter(None, (markdown, html, junit)):
        check_file(path, "the comparison", RunFolderError)
    options = CompareOptions(
        gate=None if gate is None else load_gate(gate),
        matching=match_by_questions(Matching(match, by, split_names(slices)), a, b),
        seed=SEED if seed is None else seed,
        top=top,
        allow_different=allow_different,
        without_baseline=without_baseline,
    )
    comparison = apply_gate(a, options) if b is None else compare_runs(a, b, options)
    _write(comparison, markdown, html, junit)
    _print(comparison, as_json, top)
    if comparison.gate is not None:
        raise typer.Exit(GATE_CODES[comparison.gate.outcome])


def _write(comparison: RunComparison, markdown: Path | None, html: Path | None, junit: Path | None) -> None:
    if markdown is not None:
        _save(markdown, comparison_markdown(comparison))
    if junit is not None and comparison.gate is not None:
        _save(junit, gate_junit_xml(comparison.gate, comparison.b.folder))
    if html is not None:
        _save(html, comparison_page(comparison))


def _save(path: Path, text: str) -> None:
    write_output(path, text, "the comparison")
    stderr.print(f"wrote {path}")


def _print(comparison: RunComparison, as_json: bool, top: int) -> None:
    if as_json:
        stdout.print_json(json.dumps(comparison_to_dict(comparison), allow_nan=False))
    else:
        print_document(stdout, comparison_document(comparison, top))
