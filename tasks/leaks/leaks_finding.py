"""Show what a run retrieved or stated that its askers may not see: numbers and ids of documents, never their text."""

from collections.abc import Iterator, Sequence

from tasks.documents.blocks import Block, Caution, Items, Section, make_table, own
from tasks.findings.finding import Finding, RunRecords
from tasks.findings.parts import Figure
from tasks.leaks.leak_counts import LeakCounts, count_leaks

_NAMED = 5
"""Number of documents that a warning names."""


def caution(run: RunRecords) -> Caution | None:
    """Return the warning about leaks; None if none is known."""
    found = run.summary.find(LeakCounts)
    if found is None or not found.leaking:
        return None
    sentence = (
        f"{found.leaking:,} of {found.rows:,} row{_s(found.rows)} retrieved {found.passages:,} "
        f"passage{_s(found.passages)} that the asker may not see."
    )
    reasons = [_name_documents(found)]
    if found.claiming:
        verb = "states" if found.claiming == 1 else "state"
        reasons.append(f"{found.claiming:,} response{_s(found.claiming)} {verb} what only such a passage says.")
    return Caution("Leaks", sentence, tuple(reasons))


def lines(run: RunRecords) -> Iterator[str]:
    """Yield how many rows leak nothing, and of how many this is not known."""
    found = run.summary.find(LeakCounts)
    if found is not None and found.rows and not found.leaking:
        yield f"leaks: none in {found.rows:,} row{_s(found.rows)}"
    if found is not None and found.unknown:
        yield f"permissions are not known of {_unknown(found)}"


def section(run: RunRecords) -> Sequence[Block] | None:
    """Return the documents that were leaked, and why permissions are not known."""
    found = run.summary.find(LeakCounts)
    if found is None or not (found.leaking or found.unknown):
        return None
    blocks: list[Block] = []
    if found.documents:
        rows = [(name, f"{count:,}") for name, count in found.documents.items()]
        blocks.append(make_table(("document", "retrieved for askers who may not see it"), rows))
    if found.unknown:
        blocks.append(Items((own(f"Permissions are not known of {_unknown(found)}."),)))
    return [Section(own("Leaks"), tuple(blocks))]


def figures(run: RunRecords) -> Iterator[Figure]:
    """Yield the number of leaking rows."""
    found = run.summary.find(LeakCounts)
    if found is not None:
        yield Figure("leaking_rows", "Rows with a passage that the asker may not see.", found.leaking)


def _name_documents(found: LeakCounts) -> str:
    named = [f"{name} ({count:,})" for name, count in [*found.documents.items()][:_NAMED]]
    more = len(found.documents) - len(named) + found.more_documents
    if more:
        named.append(f"{more:,} more")
    if found.unnamed:
        named.append(f"{found.unnamed:,} passage{_s(found.unnamed)} without an id")
    return f"Documents: {', '.join(named)}."


def _unknown(found: LeakCounts) -> str:
    total = sum(found.unknown.values())
    reasons = ", ".join(f"{reason} ({count:,})" for reason, count in found.unknown.items())
    return f"{total:,} row{_s(total)}: {reasons}"


def _s(count: int) -> str:
    return "" if count == 1 else "s"


LEAKS = Finding(
    summary=(LeakCounts,), count=count_leaks, caution=caution, lines=lines, section=section, figures=figures
)
