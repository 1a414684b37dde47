"""Ask about rows of a run again, to measure how much its judge varies."""

from flows.findings.anchor.anchor_repeats import ask_rows_again, ask_unsettled_rows
from flows.findings.run_finding import ComputedRun, Found, RunFinding
from tasks.findings.repeats.repeat_record import AskedAgain
from tasks.findings.variance.variance_record import VarianceRecords


def ask_chosen_rows(run: ComputedRun) -> Found:
    """Return what was asked again about as many rows as the options of the run say."""
    again = ask_rows_again(run.run, run.tables)
    if again is None or again.reason is None:
        return Found(again)
    unasked = f"no row was asked about again, so the judge's variance is not known: {again.reason}"
    return Found(again, (unasked,))


def ask_deciding_rows(run: ComputedRun) -> Found | None:
    """Return what was asked again with the rows on which the judge's noise may turn the gate; None without any."""
    variances = run.record.find_all(VarianceRecords)
    again = ask_unsettled_rows(run.run, run.tables, run.record.find(AskedAgain), variances)
    return None if again is None else Found(again)


FINDING = RunFinding(compute=ask_chosen_rows, settle=ask_deciding_rows)
