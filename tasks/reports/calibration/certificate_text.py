"""Describe the certificate of a judge: lines for summaries and reports, a table of its planted changes."""

from collections.abc import Mapping
from typing import Any

from metric_core.calibration.planted_changes import Effect
from tasks.calibration.calibration_files import format_date
from tasks.calibration.certificates import CERTIFICATE, flips_of
from tasks.reports.documents.blocks import Table, make_table, own

_HEADINGS = ("change", "what is changed", "verdict", "wrong", "95 % interval", "")
_FAULTS = {Effect.NONE: "moves verdicts", Effect.MOVE: "does not move verdicts"}


def certificate_lines(manifest: Mapping[str, Any]) -> list[str]:
    """Return what is known of planted changes of the judge's questions; nothing without a certificate.

    Args:
        manifest: Content of run.json.
    """
    entry = manifest.get(CERTIFICATE)
    if entry is None:
        return []
    flips = flips_of(entry)
    faults = [
        f"{change['change']} {_FAULTS[Effect(change['effect'])]}: {change['wrong']} of {change['asked']}"
        for change in entry["changes"]
        if change["is_fault"]
    ]
    day = format_date(entry["created"])
    found = "no fault" if not faults else f"{len(faults)} fault{'s' * (len(faults) > 1)}"
    first = f"{flips} that must not move; {found} found, {day}"
    return [first, *faults]


def certificate_table(entry: Mapping[str, Any]) -> Table:
    """Return the planted changes with the share of wrong verdicts.

    Args:
        entry: Entry of the certificate in run.json.
    """
    rows = [
        (
            own(change["change"]),
            own(change["about"]),
            own(change["effect"]),
            own(f"{change['wrong']} of {change['asked']}"),
            own(_interval(change["share"])),
            own("fault" if change["is_fault"] else ""),
        )
        for change in entry["changes"]
    ]
    return make_table(_HEADINGS, rows, numbers=("wrong", "95 % interval"), extra=("what is changed",))


def _interval(share: Mapping[str, Any]) -> str:
    return "" if share["low"] is None else f"{100 * share['low']:.0f} to {100 * share['high']:.0f} %"
