"""Assert that a run passes a gate, in a test or a script."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, TypeAlias

from flows.config.gate_file import GateSettings, load_gate, parse_gate
from flows.results.comparison_result import ComparisonResult, folder_of
from flows.results.gated_comparison import CompareOptions, apply_gate, compare_runs
from flows.results.run_result import RunResult
from metric_core.gates.rules import GateResult, Outcome
from tasks.comparison.row_matching import match_by_questions
from tasks.comparison.run_pair import Matching
from tasks.documents.comparison.comparison_words import check_facts
from tasks.runtime.short_tracebacks import shortens_tracebacks

GateRules: TypeAlias = str | Path | Sequence[str] | Mapping[str, Any]
"""A gate: the path of a gate file, short rules such as `["faithfulness >= 0.8"]`, or the content of a gate file."""


@shortens_tracebacks
def assert_gate(  # noqa: PLR0913 one keyword per option of a comparison
    run: RunResult | str | Path,
    gate: GateRules,
    *,
    baseline: RunResult | str | Path | None = None,
    by: str | None = None,
    match: str | None = None,
    slices: Sequence[str] = (),
    allow_different: bool = False,
) -> ComparisonResult:
    """Raise an AssertionError that lists the rules of a gate that a run does not pass.

    A gate that cannot decide does not pass either, unless it says `inconclusive = "passed"`.

    Args:
        run: The run, or its run folder.
        gate: Path of a gate file, short rules, or the content of a gate file.
        baseline: Run that rules about a regression compare with, or its run folder.
        by: Cluster column: rows that share a value are resampled together. Default: that of the run.
        match: Column by which rows are matched with those of the baseline. Default: their ids, or their
            questions if ids are digests of content.
        slices: Columns that divide the rows into slices. Default: those of the run.
        allow_different: Apply rules about a regression to runs that are not like for like.

    Returns:
        The result of the gate, with the comparison if there is a baseline.

    Raises:
        AssertionError: A rule is violated or cannot be decided.
        NotComparableError: The gate has rules about a regression, and the runs are not like for like.
        AssayError: Anything else that the user can fix; the message says how.
    """
    __tracebackhide__ = True  # pytest shows the line of the test instead of this one
    folder, before = folder_of(run), None if baseline is None else folder_of(baseline)
    matching = match_by_questions(Matching(match, by, tuple(slices)), before, folder)
    options = CompareOptions(gate=_read(gate), matching=matching, allow_different=allow_different)
    found = apply_gate(folder, options) if before is None else compare_runs(before, folder, options)
    if found.gate is not None and found.gate.outcome is not Outcome.PASSED:
        raise AssertionError(describe_gate(found.gate, folder))
    return ComparisonResult(found)


def describe_gate(gate: GateResult, run: Path) -> str:
    """Return what a gate says about a run: its outcome, and a line per rule that is not passed."""
    lines = [f"the gate {'is inconclusive' if gate.outcome is Outcome.INCONCLUSIVE else gate.outcome} for {run}:"]
    for check in gate.checks:
        if check.outcome is not Outcome.PASSED:
            lines.append(f"  {check.outcome}: {check.subject}, {check.rule}: {check.reason}")
            lines.append(f"    {check_facts(check)}")
    passed = sum(check.outcome is Outcome.PASSED for check in gate.checks)
    return "\n".join([*lines, f"  {passed} of {len(gate.checks)} checks passed"])


def _read(gate: GateRules) -> GateSettings:
    if isinstance(gate, (str, Path)):
        return load_gate(Path(gate))
    return parse_gate(gate if isinstance(gate, Mapping) else {"absolute": list(gate)}, "the gate")
