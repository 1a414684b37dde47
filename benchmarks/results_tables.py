"""Print the tables of a benchmark, and write them into the page that explains them."""

from collections.abc import Iterable
from pathlib import Path

PAGES = (Path(__file__).parent / "results", Path(__file__).parents[1] / "docs")


def publish(parts: Iterable[str], begin: str, end: str, *, write: bool) -> None:
    """Print the parts of tables as they come, and write them between two comments of the page that has them.

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
        (page,) = [
            path for folder in PAGES for path in folder.glob("*.md") if begin in path.read_text(encoding="utf-8")
        ]
        before, _, rest = page.read_text(encoding="utf-8").partition(begin)
        after = rest.partition(end)[2]
        page.write_text(f"{before}{begin}\n\n{''.join(printed)}\n{end}{after}", encoding="utf-8")
