"""Print the tables of a benchmark, and write them into the page that explains them."""

from collections.abc import Iterable
from pathlib import Path

STATISTICS = Path(__file__).parents[1] / "docs" / "statistics.md"


def publish(parts: Iterable[str], begin: str, end: str, *, write: bool) -> None:
    """Print the parts of tables as they come, and write them between two comments of docs/statistics.md.

    Args:
        parts: Parts of Markdown tables.
        begin: Comment before the tables.
        end: Comment after them.
        write: If false, only print.
    """
    printed = []
    for part in parts:
        print(part, end="", flush=True)
        printed.append(part)
    if write:
        before, _, rest = STATISTICS.read_text(encoding="utf-8").partition(begin)
        after = rest.partition(end)[2]
        STATISTICS.write_text(f"{before}{begin}\n\n{''.join(printed)}\n{end}{after}", encoding="utf-8")
