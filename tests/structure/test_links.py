"""The links of the documentation lead to files, and to headings in them."""

import re
from pathlib import Path

from tests.structure.house import ROOT, files, text_of

_LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")
_CODE = re.compile(r"^```.*?^```$|`[^`\n]+`", re.MULTILINE | re.DOTALL)
_HEADING = re.compile(r"^#+ (.+)$", re.MULTILINE)


def anchors(page: Path) -> set[str]:
    """Return the anchors that GitHub gives the headings of a page."""
    text = re.sub(r"^```.*?^```$", "", text_of(page), flags=re.MULTILINE | re.DOTALL)
    found: set[str] = set()
    for heading in _HEADING.findall(text):
        words = re.sub(r"\]\([^)]*\)", "]", heading)
        anchor = re.sub(r"[^\w\- ]", "", words.lower()).replace(" ", "-")
        found.add(f"{anchor}-1" if anchor in found else anchor)
    return found


def links(page: Path) -> list[str]:
    """Return the links of a page that lead to files of the repository."""
    targets = _LINK.findall(_CODE.sub("", text_of(page)))
    return [target for target in targets if not target.startswith(("http://", "https://", "mailto:"))]


def leads_somewhere(page: Path, target: str) -> bool:
    file, _, anchor = target.partition("#")
    found = (ROOT / page.parent / file).resolve() if file else ROOT / page
    return found.exists() and (not anchor or anchor in anchors(found.relative_to(ROOT)))


def test_every_link_leads_somewhere() -> None:
    pages = [path for path in files() if path.suffix == ".md" and path.parts[0] not in ("tests", "metric_core")]
    assert len(pages) > 50
    broken = [f"{page}: {target}" for page in pages for target in links(page) if not leads_somewhere(page, target)]
    assert broken == []
