"""Count the questions about the anchor of a run."""

from collections.abc import Mapping

from flows.dry_run.dry_run import make_dry_run
from flows.dry_run.dry_run_result import DryRun, FindingDryRun
from flows.findings.anchor.anchor_plan import plan_anchor
from flows.findings.anchor.anchor_repeats import EarlierRepeats, expect_rows, is_asked_again
from flows.findings.repeats.preview_repeats import preview_rows_again, repeat_line
from flows.planning.run_plan import RunPlan
from flows.publishing.run_subject import subject_name


def preview_anchor(plan: RunPlan, _of_rows: DryRun) -> Mapping[str, FindingDryRun]:
    """Return the dry run of the anchor, and that of its rows that are asked about again."""
    anchor = plan_anchor(plan)
    of_anchor = make_dry_run(anchor.run)
    found = {"anchor": FindingDryRun(of_anchor, anchor_line(of_anchor), of_anchor.problems)}
    if is_asked_again(anchor):
        options = plan.monitoring
        earlier = EarlierRepeats(options.history, frozenset({subject_name(options.name, options.source)}))
        again = preview_rows_again(anchor.run, expect_rows(anchor, of_anchor.rows, earlier))
        found["asked_again"] = FindingDryRun(again, repeat_line(again, "anchor row"))
    return found


def anchor_line(anchor: DryRun) -> str:
    """Return a line about the anchor."""
    tally, rows = anchor.tally, f"{anchor.rows:,} row{'s' * (anchor.rows != 1)}"
    if not tally.asked and anchor.certainty == "exact":
        return f"The anchor has {rows}; all answers about it are cached."
    about = anchor.certainty.qualifier
    return f"The anchor has {rows}, about which {about}{tally.asked:,} questions are to ask, included below."
