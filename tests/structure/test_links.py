"""The links of the documentation lead to files, and to headings in them."""

import re
from pathlib import Path

from tests.structure.house import ROOT, files, text_of

_LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")
_CODE = re.compile(r"^```.*?^```$|`[^`\n]+`", re.MULTILINE | re.DOTALL)
_HEADING = re.compile(r"^#+ (.+)$", re.MULTILINE)
_NAMED = re.compile(
    r"(?<![\w./-])((?:\.ci|benchmarks|constraints|deployments|docs|examples|flows|metric_core|tasks|tests)/[\w./-]*\w)"
)
_BENCHMARK = re.compile(r"python -m (benchmarks|tests)((?:\.\w+)+)")
_GENERATED = re.compile(r"<!-- (?:begin|public names).*?<!-- end.*?-->", re.DOTALL)
MOST_LINES = 300


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


def pages() -> list[Path]:
    """Return the pages of the documentation."""
    return [path for path in files() if path.suffix == ".md" and path.parts[0] not in ("tests", "metric_core")]


def test_every_link_leads_somewhere() -> None:
    assert len(pages()) > 50
    broken = [f"{page}: {target}" for page in pages() for target in links(page) if not leads_somewhere(page, target)]
    assert broken == []


def test_every_file_that_a_page_names_exists() -> None:
    for page in pages():
        text = text_of(page)
        named = [each for each in _NAMED.findall(text) if "NAME" not in each]
        programs = [package + module.replace(".", "/") for package, module in _BENCHMARK.findall(text)]
        named += [each if (ROOT / each / "__main__.py").exists() else f"{each}.py" for each in programs]
        assert [each for each in named if not (ROOT / each).exists()] == [], page


def test_a_page_can_be_read_in_one_go() -> None:
    lengths = {page: _GENERATED.sub("", text_of(page)).count("\n") for page in pages() if page.name != "CHANGELOG.md"}
    assert {page: length for page, length in lengths.items() if length > MOST_LINES} == {}
