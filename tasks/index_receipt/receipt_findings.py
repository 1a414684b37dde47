"""Name what has changed between two versions of an index, with counts, examples and the limit of each change."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

import numpy as np

from metric_core.errors import ConfigError
from metric_core.parsing.suggestions import suggest_names
from tasks.index_receipt.chunk_marks import Mark
from tasks.index_receipt.index_changes import IndexChanges, add_up, count_marks, names_of
from tasks.index_receipt.receipt import Receipt, is_read
from tasks.models.recognizers.detection import UNKNOWN
from tasks.runtime.wording import format_percent
from tasks.sources.index_checks import MOST_EXAMPLES, IndexFinding

LIMITS: Mapping[str, float | None] = {
    "lost": 0.01,
    "doubled": 0.01,
    "empty": 0.01,
    "truncated": 0.01,
    "mangled": 0.01,
    "unprotected": 0.0,
    "permissions": 0.01,
    "metadata": 0.01,
    "older": 0.01,
    "language": 0.05,
    "edited": None,
    "added": None,
    "moved": None,
    "chunking": None,
    "unordered": None,
    "embedder": None,
}
"""Kinds of changes, the worst first -> share from which on an index should not be used; None for any."""
_WITHIN = ("doubled", "empty", "mangled")
"""Kinds that a single index shows."""
_OTHER_SIZE = 1.25
_OTHER_OVERLAP = 0.05
_ORDERED = 0.9
_LEAST_SHIFT = 0.02


def find_changes(changes: IndexChanges, limits: Mapping[str, float | None]) -> list[IndexFinding]:
    """Return what has changed between two versions of an index, the worst kind first.

    Args:
        limits: Kind -> share, for kinds whose limit is not the default one.
    """
    is_first = not changes.old.names
    kinds = [kind for kind in LIMITS if kind in _WITHIN or not is_first]
    found = (each for kind in kinds for each in _FINDERS[kind](changes))
    return [with_limit(each, limits) for each in found if each.count]


def with_limit(finding: IndexFinding, limits: Mapping[str, float | None]) -> IndexFinding:
    """Return a finding with the limit of its kind."""
    known = LIMITS.get(finding.kind, finding.limit)
    return replace(finding, limit=limits.get(finding.kind, known))


def check_limits(limits: Mapping[str, float | None], more: Iterable[str]) -> None:
    """Check that limits are those of kinds that there are.

    Args:
        more: Kinds of installed checks.

    Raises:
        ConfigError: There is no such kind, or a limit is no share.
    """
    known = [*LIMITS, *more]
    for kind, limit in limits.items():
        if kind not in known:
            near = suggest_names(kind, known)
            meant = f" Did you mean {near[0]}?" if near else ""
            raise ConfigError(f"an index has no limit {kind!r}; there are: {', '.join(known)}.{meant}")
        if limit is not None and not 0 <= limit <= 1:
            raise ConfigError(f"the limit of {kind} must be a share between 0 and 1, got {limit:g}")


def _of_documents(kind: str, names: Sequence[str], of: int, words: str) -> Iterator[IndexFinding]:
    """Yield a finding about documents.

    Args:
        words: Words on what became of them.
    """
    sentence = f"{len(names):,} of {of:,} documents {words}"
    yield IndexFinding(kind, len(names), of, "documents", sentence, tuple(names[:MOST_EXAMPLES]))


def _find_lost(changes: IndexChanges) -> Iterator[IndexFinding]:
    names = names_of(changes.old.names, changes.lost)
    yield from _of_documents("lost", names, len(changes.old.names), "of the old index are gone")


def _find_added(changes: IndexChanges) -> Iterator[IndexFinding]:
    names = names_of(changes.new.names, changes.added)
    yield from _of_documents("added", names, len(changes.new.names), "are new")


def _find_moved(changes: IndexChanges) -> Iterator[IndexFinding]:
    names = [f"{changes.old.names[old]} -> {changes.new.names[new]}" for new, old in changes.moved.items()]
    yield from _of_documents("moved", names, len(changes.old.names), "have another name, and the same text")


def _find_doubled(changes: IndexChanges) -> Iterator[IndexFinding]:
    names = names_of(changes.new.names, changes.doubled)
    yield from _of_documents("doubled", names, len(changes.new.names), "are in the index twice, or parts of them")


def _in_both(kind: str, changes: IndexChanges, mask: np.ndarray, words: str) -> Iterator[IndexFinding]:
    names = [changes.new.names[each] for each in changes.both[mask]]
    yield from _of_documents(kind, names, len(changes.both), words)


def _find_edited(changes: IndexChanges) -> Iterator[IndexFinding]:
    yield from _in_both("edited", changes, changes.edited, "have another text than before")


def _find_unordered(changes: IndexChanges) -> Iterator[IndexFinding]:
    words = (
        "have other chunks than before, which do not follow one another: whether their text is the same is not known. "
        "Sort the chunks by document and position"
    )
    yield from _in_both("unordered", changes, changes.unordered, words)


def _find_older(changes: IndexChanges) -> Iterator[IndexFinding]:
    before, now = changes.old.documents["day"][changes.before], changes.new.documents["day"][changes.both]
    yield from _in_both("older", changes, (now > 0) & (now < before - 1e-6), "have an earlier date than before")


def _find_empty(changes: IndexChanges) -> Iterator[IndexFinding]:
    empty = count_marks(changes.new, Mark.EMPTY)
    before = np.zeros(len(empty), np.int64)
    before[changes.both] = count_marks(changes.old, Mark.EMPTY)[changes.before]
    more = np.maximum(empty - before, 0)
    names = names_of(changes.new.names, more > 0)
    yield _of_chunks("empty", int(more.sum()), changes.new, names, "are empty")


def _find_truncated(changes: IndexChanges) -> Iterator[IndexFinding]:
    cut = add_up(changes.new, changes.truncated.astype(np.int64))
    names = names_of(changes.new.names, cut > 0)
    words = "break off in the middle of a sentence, and did not before"
    yield _of_chunks("truncated", int(cut.sum()), changes.new, names, words)


def _of_chunks(kind: str, count: int, receipt: Receipt, names: Sequence[str], words: str) -> IndexFinding:
    total = int(receipt.starts[-1])
    where = f", in {len(names):,} documents" if len(names) > 1 else ""
    sentence = f"{count:,} of {total:,} chunks {words}{where}"
    return IndexFinding(kind, count, total, "chunks", sentence, tuple(names[:MOST_EXAMPLES]))


def _find_mangled(changes: IndexChanges) -> Iterator[IndexFinding]:
    is_first = not changes.old.names
    garbled = _more_marks(changes, Mark.GARBLED) | (changes.added & (count_marks(changes.new, Mark.GARBLED) > 0))
    kinds = {"hold characters of a wrong encoding": garbled}
    if not is_first:
        kinds["hold markup"] = _more_marks(changes, Mark.MARKUP)
        for words, holders in changes.repeated_edges():
            name = f"{words} alike, as with a menu or a footer"
            kinds[name] = kinds.get(name, np.zeros(len(changes.new.names), bool)) | holders
    every = np.any([*kinds.values()], axis=0)
    parts = [f"{int(mask.sum()):,} {words}" for words, mask in kinds.items() if mask.any()]
    words = f"are mangled: {', '.join(parts)}"
    yield from _of_documents("mangled", names_of(changes.new.names, every), len(changes.new.names), words)


def _more_marks(changes: IndexChanges, mark: Mark) -> np.ndarray:
    """Return which new documents with another text than before have more chunks with a mark."""
    found = np.zeros(len(changes.new.names), bool)
    now, before = (
        count_marks(receipt, mark)[places] / np.maximum(np.diff(receipt.starts)[places], 1)
        for receipt, places in ((changes.new, changes.both), (changes.old, changes.before))
    )
    found[changes.both] = ((before == 0) & (now > 0)) | (now > before + 0.1)
    found &= changes.changed
    return found


def _find_metadata(changes: IndexChanges) -> Iterator[IndexFinding]:
    bits = {name: np.uint64(1 << place) for place, name in enumerate(changes.new.facts.columns)}
    before, now = changes.old.documents["columns"][changes.before], changes.new.documents["columns"][changes.both]
    lost = np.zeros(len(changes.both), bool)
    counts: Counter[str] = Counter()
    for place, name in enumerate(changes.old.facts.columns):
        gone = (before & np.uint64(1 << place) != 0) & (now & bits.get(name, np.uint64(0)) == 0)
        counts[name] = int(gone.sum())
        lost |= gone
    columns = ", ".join(f"{name} in {count:,}" for name, count in counts.most_common(MOST_EXAMPLES) if count)
    yield from _in_both("metadata", changes, lost, f"lost metadata: {columns}")


def _permissions(changes: IndexChanges) -> tuple[np.ndarray, np.ndarray]:
    return changes.old.documents["permissions"][changes.before], changes.new.documents["permissions"][changes.both]


def _find_unprotected(changes: IndexChanges) -> Iterator[IndexFinding]:
    before, now = _permissions(changes)
    lost = (before != "") & (now == "")
    groups = Counter(group for each in before[lost] for group in each.split("\n"))
    words = f"no longer say who may see them: {_list_counts(groups)} before"
    yield from _in_both("unprotected", changes, lost, words)


def _find_permissions(changes: IndexChanges) -> Iterator[IndexFinding]:
    before, now = _permissions(changes)
    other = (before != now) & (before != "") & (now != "")
    lost: Counter[str] = Counter()
    gained: Counter[str] = Counter()
    for old, new in zip(before[other], now[other], strict=True):
        lost.update({*old.split("\n")} - {*new.split("\n")})
        gained.update({*new.split("\n")} - {*old.split("\n")})
    parts = [f"{words} {_list_counts(groups)}" for words, groups in (("lost", lost), ("gained", gained)) if groups]
    yield from _in_both("permissions", changes, other, f"may be seen by others than before: {'; '.join(parts)}")


def _list_counts(counts: Counter[str]) -> str:
    return ", ".join(f"{name} in {count:,}" for name, count in counts.most_common(MOST_EXAMPLES))


def _find_language(changes: IndexChanges) -> Iterator[IndexFinding]:
    one_in = max(changes.old.facts.one_in, changes.new.facts.one_in)
    before, now = (
        dict(zip(each.names, each.documents["language"], strict=True)) for each in (changes.old, changes.new)
    )
    now |= {changes.new.names[each]: before[changes.new.names[each]] for each in changes.both[changes.same]}
    counts = [
        Counter(language for name, language in found.items() if language not in ("", UNKNOWN) and is_read(name, one_in))
        for found in (before, now)
    ]
    totals = [max(sum(each.values()), 1) for each in counts]
    shares = {
        name: [each[name] / total for each, total in zip(counts, totals, strict=True)] for name in counts[0] | counts[1]
    }
    shifts = {name: abs(new - old) for name, (old, new) in shares.items()}
    largest = sorted(shifts, key=lambda name: -shifts[name])[:2]
    if not largest or shifts[largest[0]] < _LEAST_SHIFT:
        return
    parts = [f"{name} from {format_percent(shares[name][0])} to {format_percent(shares[name][1])}" for name in largest]
    of = len(changes.new.names)
    count = max(1, round(shifts[largest[0]] * of))
    yield IndexFinding("language", count, of, "documents", f"shares of languages differ: {', '.join(parts)}")


def _find_embedder(changes: IndexChanges) -> Iterator[IndexFinding]:
    before, now = (", ".join(sorted(each.facts.embedders)) for each in (changes.old, changes.new))
    if before and now and before != now:
        yield IndexFinding("embedder", 1, 1, "indexes", f"vectors are of {now}, and were of {before}")


def _find_chunking(changes: IndexChanges) -> Iterator[IndexFinding]:
    sizes = [_median_size(*each) for each in ((changes.old, changes.before), (changes.new, changes.both))]
    overlaps = [each.facts.overlap / max(each.facts.bytes, 1) for each in (changes.old, changes.new)]
    is_ordered = all((each.documents["runs"] <= 1).mean() > _ORDERED for each in (changes.old, changes.new))
    is_other = max(sizes) > _OTHER_SIZE * max(min(sizes), 1)
    is_other |= is_ordered and abs(overlaps[1] - overlaps[0]) > _OTHER_OVERLAP
    recut = int(changes.recut.sum())
    if not (recut or is_other):
        return
    total = len(changes.both)
    same = f"{recut:,} of {total:,} documents have the same text in other chunks"
    parts = [
        f"{words} {old} -> {new}"
        for words, old, new in (
            ("median size", f"{sizes[0]:,.0f}", f"{sizes[1]:,.0f} characters"),
            ("overlap", *map(format_percent, overlaps)),
        )
        if old != new.split()[0]
    ]
    names = [changes.new.names[each] for each in changes.both[changes.recut]]
    sentence = f"chunks are cut otherwise: {'; '.join((same, *parts))}"
    yield IndexFinding("chunking", max(recut, 1), max(total, 1), "documents", sentence, tuple(names[:MOST_EXAMPLES]))


def _median_size(receipt: Receipt, places: np.ndarray) -> float:
    wanted = np.zeros(len(receipt.names), bool)
    wanted[places] = True
    lengths = receipt.chunks["length"][wanted[receipt.owners] & (receipt.chunks["length"] > 0)]
    return float(np.median(lengths)) if len(lengths) else 0.0


_FINDERS: Mapping[str, Callable[[IndexChanges], Iterator[IndexFinding]]] = {
    "lost": _find_lost,
    "doubled": _find_doubled,
    "empty": _find_empty,
    "truncated": _find_truncated,
    "mangled": _find_mangled,
    "unprotected": _find_unprotected,
    "permissions": _find_permissions,
    "metadata": _find_metadata,
    "older": _find_older,
    "language": _find_language,
    "edited": _find_edited,
    "added": _find_added,
    "moved": _find_moved,
    "chunking": _find_chunking,
    "unordered": _find_unordered,
    "embedder": _find_embedder,
}
