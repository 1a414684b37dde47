"""Compare a rebuilt index with the accepted version before its run asks anything."""

from functools import partial
from pathlib import Path

from flows.index_events.rebuild_guards import AnnouncedIndex, PassedIndex
from metric_core.errors import AssayError
from tasks.index_receipt.index_comparison import CheckedIndex, CheckRequest, check_index
from tasks.index_receipt.receipt_finding import entry_of
from tasks.index_receipt.receipt_words import describe_finding
from tasks.prefect_support.run_log import run_logger
from tasks.runs.finished_run import FinishedRun
from tasks.sources.redaction import Redaction

_RECEIPT = "index.receipt"
"""Name of the receipt in the run folder of a version."""


def guard_index(index: AnnouncedIndex) -> PassedIndex:
    """Return what has changed in an index, with its receipt to keep.

    Raises:
        AssayError: The index is beyond its limits, or cannot be read.
    """
    before = None if index.baseline is None else index.baseline / _RECEIPT
    is_known = before is not None and before.is_file()
    request = CheckRequest(
        new=[index.chunks],
        old=[str(before)] if is_known else [],
        limits=index.limits.index_limits,
        redact=None if index.data.redact is None else Redaction(index.data.redact).text,
        rows=FinishedRun(index.baseline).samples if is_known and index.baseline is not None else None,
    )
    checked = check_index(request)
    for each in checked.findings:
        run_logger().info("the index: %s", describe_finding(each))
    if checked.beyond and index.limits.beyond_limits == "stop":
        raise AssayError(_refusal(checked))
    return PassedIndex(entry_of(checked), partial(_keep, checked))


def _refusal(checked: CheckedIndex) -> str:
    """Return why a version is not evaluated, and what to do."""
    found = [*map(describe_finding, checked.beyond)]
    found += [] if checked.touched is None else [checked.touched.sentence]
    return (
        f"the index is beyond its limits, so that nothing was asked: {'; '.join(found)}. If the index was to change "
        "like this, allow it in deploy.index_limits, or announce the version without chunks"
    )


def _keep(checked: CheckedIndex, folder: Path) -> None:
    checked.receipt.write(folder / _RECEIPT)
