"""Describe what became of the judgments of a run when its index was rebuilt, as run.json records it."""

from collections.abc import Iterator

from metric_core.evidence_spans import SpanState
from tasks.record.judgments import JudgmentsRecord

_NAMED = 3


def describe_judgments(found: JudgmentsRecord) -> str:
    """Return one line on the judgments of texts: shares of those known, and what is uncertain or was edited.

    >>> counts = {"carried": 96, "edited": 1, "uncertain": 2, "lost": 1, "unseen": 0, "passages": 200, "new": 6}
    >>> from tasks.record.judgments import JudgmentChange
    >>> change = JudgmentChange(row="q7", state="edited", text="The fee is 4 euros.", change="'4' became '5'")
    >>> describe_judgments(JudgmentsRecord(**counts, is_complete=True, changes=(change,)))
    "carried 96 %, lost 1 %, 2 uncertain, 1 whose evidence was edited: q7 ('4' became '5'); 3 % of passages have none"
    """
    known = found.carried + found.edited + found.uncertain + found.lost
    parts = [f"carried {_percent(found.carried, known)}"]
    parts.append(f"lost {_percent(found.lost, known)}")
    if not found.is_complete:
        parts.append(f"{found.unseen:,} not among the retrieved passages")
    parts.append(f"{found.uncertain:,} uncertain")
    edited = [each for each in found.changes if each.state == SpanState.EDITED]
    names = ", ".join(f"{each.row} ({each.change})" for each in edited[:_NAMED])
    more = f" and {found.edited - _NAMED:,} more" if found.edited > _NAMED else ""
    parts.append(f"{found.edited:,} whose evidence was edited" + (f": {names}{more}" if names else ""))
    new = _percent(found.new, found.passages)
    return f"{', '.join(parts)}; {new} of passages have none"


def warn_about_judgments(found: JudgmentsRecord | None) -> Iterator[str]:
    """Yield sentences about retrieved ids that are not chunks, and about judgments that were not carried."""
    ids = None if found is None else found.ids
    if ids is not None and ids.known < ids.retrieved:
        yield (
            f"{ids.known:,} of {ids.retrieved:,} retrieved ids are in {ids.file}: evidence is found at its "
            "chunks, and a passage with another id does not count as one of them, even with the same text. Both need "
            "the ids of the same index"
        )
    open_ones = 0 if found is None else found.uncertain + found.edited
    if found is None or not (open_ones or found.lost or found.new):
        return
    advice = (
        ". Uncertain and edited ones do not count; with judgments=both the judge grades what was retrieved"
        if open_ones
        else ""
    )
    yield f"judgments: {describe_judgments(found)}{advice}"


def _percent(count: int, of: int) -> str:
    """Return a share in whole percent, which is 0 or 100 only if it is exactly that.

    >>> _percent(999, 1000), _percent(1, 1000), _percent(0, 0)
    ('99.9 %', '0.1 %', '0 %')
    """
    share = 100 * count / of if of else 0.0
    return f"{share:.0f} %" if share in {0, 100} or 1 <= share <= 99 else f"{share:.1f} %"
