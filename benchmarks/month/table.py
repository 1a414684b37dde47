"""Write the table of faults of a month: what happened, told when, to whom, how often."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

from benchmarks.month.ledger import Account, Entry

_HEAD = "| evaluation | fault | state | told | after | to | times |\n|---|---|---|---|---|---|---|"


def write_table(
    entries: Iterable[Entry], total: Account, minutes: int, deviations: Sequence[str], void: Sequence[str] = ()
) -> str:
    """Return the table, and the sums.

    Args:
        entries: Entries of all stories.
        total: Faults of the messages about all evaluations.
        minutes: Minutes between two nights.
        deviations: Sentences on what pages show, or others were told, otherwise than the script saw it.
        void: Sentences on the stories that prove nothing, because their runs took too long.
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
    lines += [
        f"{len(deviations)} deviations of pages, heartbeats and escalations",
        *(f"- {each}" for each in deviations),
    ]
    if void:
        lines += [f"{len(void)} stories are void, because their runs took more than half of the interval"]
        lines += [f"- {each}" for each in void]
    return "\n".join([*lines, ""])


def _row(entry: Entry) -> str:
    wanted = ", ".join(f"{each.change} {each.key}" for each in entry.expected) or "nothing"
    cells: Iterator[str] = iter(())
    if entry.told:
        seconds = (entry.told[0].time - (entry.ended or entry.begun)).total_seconds()
        counts = Counter(each.by for each in entry.told)
        cells = iter((f"{seconds:+.0f} s", ", ".join(counts), ", ".join(map(str, counts.values()))))
    shown = [*cells] or ["", "", "0"]
    return "| " + " | ".join([entry.evaluation, entry.what, entry.state, wanted, *shown]) + " |"
