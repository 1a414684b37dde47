"""The flow `compare`: compare two run folders on a schedule or an event, and publish the result as an artifact."""

from pathlib import Path

from prefect import flow
from prefect.artifacts import create_markdown_artifact
from prefect.client.schemas import State
from prefect.states import Completed, Failed

from flows.config.gate_file import GateChoice
from flows.execution.deployed_parameters import as_deployed, is_own_run
from flows.publishing.artifacts import COMPARISON_ARTIFACT
from flows.results.gated_comparison import CompareOptions, compare_runs
from metric_core.gates.rules import Outcome
from metric_core.statistics.resampling import SEED
from tasks.comparison.row_matching import match_by_questions
from tasks.comparison.run_pair import Matching
from tasks.options.settings import Settings
from tasks.prefect_support.patience import crash_without_server
from tasks.reports.comparison.comparison_document import comparison_markdown


class Comparison(Settings):
    """Parameters of a comparison.

    Args:
        baseline: Run folder of the baseline.
        run: Run folder to compare with it.
        gate: Gate to check the run against: a gate file, or its content.
        match: Column by which rows are matched; by default their ids.
        by: Column by which rows are grouped; by default every row is independent.
        slices: Columns that divide the rows into slices; by default those of the run.
        seed: Seed of the resampling.
        allow_different: Apply the gate's regression rules to runs that are not like for like.
    """

    baseline: str
    run: str
    gate: GateChoice = None
    match: str | None = None
    by: str | None = None
    slices: tuple[str, ...] = ()
    seed: int = SEED
    allow_different: bool = False


@flow(name="compare", persist_result=False, validate_parameters=False)
@crash_without_server
@as_deployed(
    comparison__baseline=is_own_run,
    comparison__run=is_own_run,
    comparison__match=True,
    comparison__by=True,
    comparison__slices=True,
)
def compare(comparison: Comparison) -> State[str]:
    """Compare two runs; the flow run fails if the gate fails.

    Args:
        comparison: The runs, and how to compare them.

    Returns:
        The comparison as Markdown, in the state Failed or Inconclusive where the gate says so.

    Raises:
        AssayError: Anything that the user can fix; the message says how.
    """
    baseline, run = Path(comparison.baseline), Path(comparison.run)
    options = CompareOptions(
        gate=comparison.gate,
        matching=match_by_questions(Matching(comparison.match, comparison.by, comparison.slices), baseline, run),
        seed=comparison.seed,
        allow_different=comparison.allow_different,
    )
    result = compare_runs(baseline, run, options)
    text = comparison_markdown(result)
    create_markdown_artifact(
        text, key=COMPARISON_ARTIFACT, description=f"{comparison.run} compared with {comparison.baseline}"
    )
    outcome = None if result.gate is None else result.gate.outcome
    if outcome is Outcome.FAILED:
        return Failed(message="the gate failed", data=text)
    if outcome is Outcome.INCONCLUSIVE:
        return Completed(name="Inconclusive", message="the gate is inconclusive", data=text)
    return Completed(data=text)
