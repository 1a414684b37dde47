"""Ask about rows of a run again, to measure how much its judge varies."""

from collections.abc import Mapping

from flows.dry_run.dry_run_result import DryRun, FindingDryRun
from flows.findings.repeats.ask_rows import ask_rows_again, ask_unsettled_rows
from flows.findings.repeats.preview_repeats import preview_rows_again, repeat_line
from flows.findings.repeats.repeated_rows import can_ask_again
from flows.findings.run_finding import ComputedRun, Found, RunFinding
from flows.planning.run_plan import RunPlan
from tasks.findings.judge_facts import judge_variances
from tasks.findings.repeats.repeat_options import RepeatOptions
from tasks.findings.repeats.repeat_record import AskedAgain


def ask_chosen_rows(run: ComputedRun) -> Found:
    """Return what was asked again about as many rows as the options of the run say."""
    again = ask_rows_again(run.run, run.tables)
    if again is None or again.reason is None:
        return Found(again)
    unasked = f"no row was asked about again, so the judge's variance is not known: {again.reason}"
    return Found(again, (unasked,))


def ask_deciding_rows(run: ComputedRun) -> Found | None:
    """Return what was asked again with the rows on which the judge's noise may turn the gate; None without any."""
    is_noisy = bool(judge_variances(run.record))
    again = ask_unsettled_rows(run.run, run.tables, run.record.find(AskedAgain), is_noisy=is_noisy)
    return None if again is None else Found(again)


def preview_chosen_rows(plan: RunPlan, of_rows: DryRun) -> Mapping[str, FindingDryRun]:
    """Return the dry run of the rows that are asked about again; empty without any."""
    count = min(plan.options(RepeatOptions).ask_again, of_rows.rows)
    if not count or plan.source.retriever is not None or not can_ask_again(plan):
        return {}
    again = preview_rows_again(plan, count)
    return {"rows_asked_again": FindingDryRun(again, repeat_line(again, "row"))}


FINDING = RunFinding(compute=ask_chosen_rows, settle=ask_deciding_rows, preview=preview_chosen_rows)
