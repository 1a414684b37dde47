"""Describe the certificate of a judge: lines for summaries and reports, a table of its planted changes."""

from metric_core.calibration.planted_changes import Effect
from metric_core.statistics.resampling import Interval
from tasks.calibration.calibration_files import format_date
from tasks.calibration.certificates import flips_of
from tasks.documents.blocks import Table, make_table, own
from tasks.record.judge_quality import Certificate

_HEADINGS = ("change", "what is changed", "verdict", "wrong", "95 % interval", "")
_FAULTS = {Effect.NONE: "moves verdicts", Effect.MOVE: "does not move verdicts"}


def certificate_lines(certificate: Certificate | None) -> list[str]:
    """Return what is known of planted changes of the judge's questions; nothing without a certificate."""
    if certificate is None:
        return []
    faults = [
        f"{change.change} {_FAULTS[change.effect]}: {change.wrong} of {change.asked}"
        for change in certificate.changes
        if change.is_fault
    ]
    day = format_date(certificate.created)
    most = max((change.asked for change in certificate.changes), default=0)
    found = (
        f"{len(faults)} fault{'s' * (len(faults) > 1)}" if faults else f"no fault in at most {most} questions a change"
    )
    first = f"{flips_of(certificate)} that must not move; {found}, {day}"
    return [first, *faults]


def certificate_table(certificate: Certificate) -> Table:
    """Return the planted changes with the share of wrong verdicts."""
    rows = [
        (
            own(change.change),
            own(change.about),
            own(change.effect),
            own(f"{change.wrong} of {change.asked}"),
            own(_interval(change.share.interval)),
            own("fault" if change.is_fault else ""),
        )
        for change in certificate.changes
    ]
    return make_table(_HEADINGS, rows, numbers=("wrong", "95 % interval"), extra=("what is changed",))


def _interval(share: Interval | None) -> str:
    return "" if share is None else f"{100 * share.low:.0f} to {100 * share.high:.0f} %"
