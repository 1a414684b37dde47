"""Judgments of texts in the record of a run."""

from tasks.record.part import Part


class JudgmentChange(Part):
    """A judged text that the index holds in another form."""

    row: str
    state: str
    text: str
    change: str


class KnownIds(Part):
    """Retrieved ids that are chunks of the index.

    Args:
        file: Name of the file with the chunks.
        retrieved: Number of retrieved ids.
        known: Number of these that are in the file.
    """

    file: str
    retrieved: int
    known: int


class JudgmentsRecord(Part):
    """The judgments of texts after an index was rebuilt: their number by `SpanState`, and numbers of passages.

    Args:
        passages: Number of retrieved passages.
        new: Number of these without a judgment.
        is_complete: True if all chunks of the index are known.
        changes: The first changed texts.
        ids: Retrieved ids that are chunks; None if that is not known.
    """

    carried: int
    edited: int
    uncertain: int
    lost: int
    unseen: int
    passages: int
    new: int
    is_complete: bool
    changes: tuple[JudgmentChange, ...]
    ids: KnownIds | None = None
