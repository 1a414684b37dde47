"""Define a check that looks for faults within one index, which a package brings."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

from metric_core.errors import PluginError
from tasks.plugins.load_object import Group, installed_names, load_object
from tasks.sources.chunk_file import IndexChunk

MOST_EXAMPLES = 5
"""Examples of a finding that are shown."""


@dataclass(frozen=True, slots=True)
class IndexFinding:
    """A fault of an index, or a difference between two versions of it.

    Args:
        kind: Kind of the fault, a word by which its limit is set.
        count: Number of cases.
        of: Number of things that could have been cases.
        things: Word for these things, such as "documents" or "chunks".
        sentence: The fault in words, with the count.
        examples: A few cases: ids of documents or chunks.
        limit: Share of cases from which on the index should not be used; None if any share is fine.
    """

    kind: str
    count: int
    of: int
    things: str
    sentence: str
    examples: tuple[str, ...] = ()
    limit: float | None = None

    @property
    def share(self) -> float:
        """The share of cases.

        >>> IndexFinding("lost", 3, 12, "documents", "3 of 12 documents are lost").share
        0.25
        """
        return self.count / self.of if self.of else 0.0

    @property
    def is_beyond(self) -> bool:
        """Whether there are more cases than the limit allows."""
        return self.limit is not None and self.count > 0 and self.share > self.limit


class IndexCheck(Protocol):
    """A check of one index, which sees each chunk once, in the order of the index.

    The entry point of a check in the group `rag_assay.index_checks` names its class, or a function that makes one.

    Attributes:
        kinds: Kinds of its findings.
    """

    kinds: Sequence[str]

    def add(self, chunk: IndexChunk) -> None:
        """Look at the next chunk."""

    def findings(self) -> Iterable[IndexFinding]:
        """Return what was found once all chunks have been added."""


def open_checks() -> Iterator[IndexCheck]:
    """Yield a new check of each installed package.

    Raises:
        PluginError: A package has something else in the group.
    """
    for name in sorted(installed_names(Group.INDEX_CHECKS)):
        make: Callable[[], IndexCheck] = load_object(Group.INDEX_CHECKS, name).obj
        check = make() if callable(make) else make
        if not all(hasattr(check, name) for name in ("kinds", "add", "findings")):
            raise PluginError(f"the check {name} is {check!r}, wanted an IndexCheck of rag_assay.plugins")
        yield check
