"""Write the table of faults of a month: what happened, told when, to whom, how often."""

from collections.abc import Iterable, Iterator

from benchmarks.month.ledger import Account, Entry

_HEAD = "| evaluation | fault | state | told | after | to | times |\n|---|---|---|---|---|---|---|"


def write_table(entries: Iterable[Entry], total: Account, minutes: int) -> str:
    """Return the table, and the sums.

    Args:
        entries: Entries of all stories.
        total: Faults of the messages about all evaluations.
        minutes: Minutes between two nights.
    """
    entries = list(entries)
    faults = [entry for entry in entries if entry.is_fault]
    lines = [
        f"# {len(faults)} faults in {sum(bool(entry.state) for entry in entries)} runs, {minutes} minutes apart",
        "",
        _HEAD,
        *(_row(entry) for entry in entries if entry.is_fault or entry.expected),
        "",
    ]
    for name in ("silent", "lost", "doubled", "false"):
        found: list[str] = getattr(total, name)
        lines += [f"{len(found)} {name}", *(f"- {each}" for each in found)]
    return "\n".join([*lines, ""])


def _row(entry: Entry) -> str:
    wanted = ", ".join(f"{each.change} {each.key}" for each in entry.expected) or "nothing"
    cells: Iterator[str] = iter(())
    if entry.told:
        first = entry.told[0]
        seconds = (first.time - (entry.ended or entry.begun)).total_seconds()
        cells = iter((f"{seconds:+.0f} s", "HTTP, SMTP", str(len({each.title for each in entry.told}))))
    shown = [*cells] or ["", "", "0"]
    return "| " + " | ".join([entry.evaluation, entry.what, entry.state, wanted, *shown]) + " |"
