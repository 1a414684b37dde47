"""Compare the receipts of two versions of an index, document by document."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import product

import numpy as np

from tasks.index_receipt.chunk_marks import Mark
from tasks.index_receipt.receipt import Receipt

_MUCH = 0.2
_SIGNS = 16
"""Characters by which the lengths of documents with the same words may differ if only signs were edited."""
_LEAST_TEXT = 32
"""Characters of a document from which on another one with the same text is no coincidence."""


@dataclass(frozen=True)
class IndexChanges:
    """The documents of two versions of an index, and what became of them.

    Arrays of the documents of a version are masks or numbers in the order of its receipt.
    """

    old: Receipt
    new: Receipt

    @cached_property
    def place(self) -> np.ndarray:
        """The place of each new document in the old index; -1 if it was not there."""
        places = {name: place for place, name in enumerate(self.old.names)}
        return np.array([places.get(name, -1) for name in self.new.names], np.int64)

    @cached_property
    def both(self) -> np.ndarray:
        """The places of the new documents that the old index has, too."""
        return np.flatnonzero(self.place >= 0)

    @cached_property
    def before(self) -> np.ndarray:
        """The places of the same documents in the old index."""
        found: np.ndarray = self.place[self.both]
        return found

    @cached_property
    def _same_cuts(self) -> np.ndarray:
        found: np.ndarray = sum_texts(self.old)[self.before] == sum_texts(self.new)[self.both]
        return found

    @cached_property
    def same(self) -> np.ndarray:
        """The documents in both with the same text, as a mask."""
        found = self._has_equal("plain", "plain")
        for name, other in product(("content", "overlapping"), repeat=2):
            found |= self._has_equal(name, other)
        edges = (_sum_edges(each, name)[places] for name in ("head", "tail") for each, places in self._sides)
        heads, old_heads, tails, old_tails = edges
        lengths = [add_up(each, each.chunks["length"].astype(np.int64))[places] for each, places in self._sides]
        # Equal pieces between equal borders of chunks are no other cuts: a sign was edited.
        is_sign = ((heads == old_heads) | (tails == old_tails)) & (np.abs(lengths[0] - lengths[1]) <= _SIGNS)
        found &= ~is_sign
        found |= self._same_cuts
        return found

    @property
    def _sides(self) -> tuple[tuple[Receipt, np.ndarray], ...]:
        return (self.new, self.both), (self.old, self.before)

    def _has_equal(self, name: str, other: str) -> np.ndarray:
        found: np.ndarray = self.old.documents[name][self.before] == self.new.documents[other][self.both]
        return found

    @cached_property
    def recut(self) -> np.ndarray:
        """The documents in both with the same text in other chunks, as a mask."""
        found: np.ndarray = self.same & ~self._same_cuts
        return found

    @cached_property
    def unordered(self) -> np.ndarray:
        """The documents in both with other chunks that do not follow one another, and so no known text, as a mask."""
        runs = np.maximum(self.old.documents["runs"][self.before], self.new.documents["runs"][self.both])
        found: np.ndarray = ~self.same & (runs > 1)
        return found

    @cached_property
    def edited(self) -> np.ndarray:
        """The documents in both with another text, as a mask."""
        found: np.ndarray = ~self.same & ~self.unordered
        return found

    @cached_property
    def _gone(self) -> np.ndarray:
        """The old documents whose names are gone, as a mask."""
        gone = np.ones(len(self.old.names), bool)
        gone[self.before] = False
        return gone

    @cached_property
    def moved(self) -> dict[int, int]:
        """New documents with the text of one that is gone: new place -> old place."""
        gone = np.flatnonzero(self._gone & has_text(self.old))
        free = {int(self.old.documents["content"][each]): int(each) for each in gone}
        found = {}
        for each in np.flatnonzero((self.place < 0) & has_text(self.new)):
            if (before := free.pop(int(self.new.documents["content"][each]), None)) is not None:
                found[int(each)] = before
        return found

    @cached_property
    def lost(self) -> np.ndarray:
        """The old documents that are gone with their text, as a mask."""
        kept = np.isin(self.old.documents["content"], self.new.documents["content"]) & has_text(self.old)
        found: np.ndarray = self._gone & ~kept
        return found

    @cached_property
    def doubled(self) -> np.ndarray:
        """The new documents that repeat another one, or chunks of their own, and did not before, as a mask."""
        repeats = _repeated_share(self.new)
        found = repeats > _MUCH  # a short chunk may repeat another one by chance
        more = repeats[self.both] - _repeated_share(self.old)[self.before]
        found[self.both] = more > np.where(self._same_cuts, 0, _MUCH)
        is_copy = self.place < 0
        is_copy[[*self.moved]] = False
        texts = self.new.documents["content"]
        known = {int(text) for text in texts[~is_copy & has_text(self.new)]}
        for each in np.flatnonzero(is_copy & has_text(self.new)):  # the ones that were there first stay
            found[each] |= int(texts[each]) in known
            known.add(int(texts[each]))
        return found

    @cached_property
    def added(self) -> np.ndarray:
        """The new documents with a text that the old index has not, as a mask."""
        found: np.ndarray = (self.place < 0) & ~self.doubled
        found[[*self.moved]] = False
        return found

    @cached_property
    def changed(self) -> np.ndarray:
        """The new documents with another text than before, or that are new, as a mask."""
        found = self.added.copy()
        found[self.both[self.edited | self.unordered]] = True
        return found

    @cached_property
    def truncated(self) -> np.ndarray:
        """The new chunks that begin like an old one that ended with a sentence, and break off earlier, as a mask."""
        wanted = np.zeros(len(self.new.names), bool)
        wanted[self.both[~self.same]] = True
        cut, whole = (each.chunks["marks"] & int(Mark.MID_SENTENCE) != 0 for each in (self.new, self.old))
        owners, old_owners = self.new.owners, self.old.owners
        chosen = np.flatnonzero(wanted[owners] & cut & (self.new.chunks["head"] != 0))
        keys = (self.place[owners[chosen]].astype(np.uint64) << np.uint64(32)) | self.new.chunks["head"][chosen]
        old_keys = (old_owners.astype(np.uint64) << np.uint64(32)) | self.old.chunks["head"]
        usable = np.flatnonzero(~whole & (self.old.chunks["head"] != 0))
        order = usable[np.argsort(old_keys[usable], kind="stable")]
        at = np.searchsorted(old_keys[order], keys)
        at = np.minimum(at, max(len(order) - 1, 0))
        found = np.zeros(len(owners), bool)
        if len(order):
            match = order[at]
            is_match = (old_keys[match] == keys) & (
                self.new.chunks["length"][chosen] < self.old.chunks["length"][match]
            )
            found[chosen[is_match]] = True
        return found

    def repeated_edges(self) -> Iterator[tuple[str, np.ndarray]]:
        """Yield the edges that many documents share now, and did not before: "begin" or "end", and the documents."""
        for words, name in (("begin", "head"), ("end", "tail")):
            owners, old_owners = self.new.owners, self.old.owners
            pairs = _distinct(owners, self.new.chunks[name])
            edges, counts = np.unique(pairs[:, 1], return_counts=True)
            old_edges, old_counts = np.unique(_distinct(old_owners, self.old.chunks[name])[:, 1], return_counts=True)
            known = dict(zip(old_edges.tolist(), old_counts.tolist(), strict=True))
            least = max(3, 0.1 * len(self.new.names))
            for edge, count in zip(edges.tolist(), counts.tolist(), strict=True):
                if edge and count >= least and known.get(edge, 0) < count / 2:
                    holders = np.zeros(len(self.new.names), bool)
                    holders[pairs[pairs[:, 1] == edge, 0]] = True
                    yield words, holders & self.changed


def sum_texts(receipt: Receipt) -> np.ndarray:
    """Return a digest of the different chunks of each document, whatever their order."""
    keep = receipt.chunks["marks"] & int(Mark.REPEATED | Mark.EMPTY) == 0
    return add_up(receipt, np.where(keep, receipt.chunks["text"], np.uint64(0)))


def add_up(receipt: Receipt, values: np.ndarray) -> np.ndarray:
    """Return the sum of the values of the chunks of each document; large ones wrap around."""
    total = np.concatenate((np.zeros(1, values.dtype), np.cumsum(values, dtype=values.dtype)))
    found: np.ndarray = total[receipt.starts[1:]] - total[receipt.starts[:-1]]
    return found


def has_text(receipt: Receipt) -> np.ndarray:
    """Return which documents are long enough to be known by their text."""
    return add_up(receipt, receipt.chunks["length"].astype(np.int64)) >= _LEAST_TEXT


def _sum_edges(receipt: Receipt, name: str) -> np.ndarray:
    """Return a digest of the beginnings or ends of the different chunks of each document."""
    edges = receipt.chunks[name].astype(np.uint64)
    edges = edges * edges * np.uint64(0x9E3779B97F4A7C15)
    return add_up(receipt, np.where(receipt.chunks["marks"] & int(Mark.REPEATED) == 0, edges, np.uint64(0)))


def _repeated_share(receipt: Receipt) -> np.ndarray:
    """Return which share of each document is in chunks that repeat others of it."""
    lengths, is_repeat = receipt.chunks["length"].astype(np.int64), receipt.chunks["marks"] & int(Mark.REPEATED) != 0
    found: np.ndarray = add_up(receipt, lengths * is_repeat) / np.maximum(add_up(receipt, lengths), 1)
    return found


def count_marks(receipt: Receipt, mark: Mark) -> np.ndarray:
    """Return how many chunks of each document have a mark."""
    return add_up(receipt, (receipt.chunks["marks"] & int(mark) != 0).astype(np.int64))


def _distinct(owners: np.ndarray, values: np.ndarray) -> np.ndarray:
    return np.unique(np.stack((owners.astype(np.int64), values.astype(np.int64)), axis=1), axis=0)


def names_of(names: Sequence[str], mask: np.ndarray) -> list[str]:
    """Return the names of the chosen documents."""
    return [names[int(each)] for each in np.flatnonzero(mask)]
