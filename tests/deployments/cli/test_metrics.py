"""`assay metrics` and the pages on metrics show the same."""

import re

import pytest
from typer.testing import CliRunner

from deployments.cli._support.metric_guide import describe_metric, render_guide
from deployments.cli.main import app
from metric_core.metrics import guides
from metric_core.metrics.registry import METRICS
from tests.structure.house import ROOT

OVERVIEW = ROOT / "docs" / "metrics.md"
PAGES = ROOT / "docs" / "metrics"


def output_of(*arguments: str) -> str:
    """Return what the command prints."""
    result = CliRunner().invoke(app, ["metrics", *arguments])
    assert result.exit_code == 0, result.output
    return result.stdout


def test_the_pages_are_up_to_date() -> None:
    assert OVERVIEW.read_text(encoding="utf-8") == output_of("--markdown"), "assay metrics --markdown > docs/metrics.md"
    written = {path.stem: path.read_text(encoding="utf-8") for path in PAGES.iterdir()}
    assert written.keys() == METRICS.keys()
    different = [name for name, metric in METRICS.items() if written[name] != render_guide(metric)]
    assert different == [], "assay metrics NAME --markdown > docs/metrics/NAME.md"


def test_the_overview_links_every_metric_once() -> None:
    linked = re.findall(r"\]\(metrics/(\w+)\.md\)", OVERVIEW.read_text(encoding="utf-8"))
    assert sorted(linked) == sorted(METRICS)


def test_the_terminal_shows_what_the_page_shows() -> None:
    for name in METRICS:
        words = re.sub(r"\s+", " ", output_of(name))
        section = output_of(name, "--markdown")
        shown = {line.strip().removeprefix("- ") for line in section.splitlines()}
        for part in describe_metric(METRICS[name]):
            assert not part.title or f"**{part.title}**" in section, name
            for line in part.lines:
                assert {each.strip() for each in line.splitlines()} <= shown, name
                assert re.sub(r"\s+", " ", line).strip() in words, name
            for row in part.rows[1:]:
                assert all(cell.replace("|", "\\|") in section and cell in words for cell in row), name


def test_the_list_of_metrics_reads_no_guide(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(guides, "files", lambda _: pytest.fail("a guide was read"))
    assert set(METRICS) <= set(output_of().split())


def test_every_parameter_says_what_is_allowed() -> None:
    rows = [
        row for metric in METRICS.values() for part in describe_metric(metric) for row in part.rows if len(row) == 4
    ]
    assert [row for row in rows if row[1] in ("any", "")] == []


def test_the_documented_differences_are_there() -> None:
    """Users of Ragas and readers of the documents stumble over these."""
    pages = [OVERVIEW, *PAGES.iterdir()]
    text = re.sub(r"\s+", " ", "\n".join(path.read_text(encoding="utf-8") for path in pages))
    for words in (
        "This is average precision",
        "Reads no contexts",
        "the packaged model finds 8 entities instead of 6",
        "The second prompt swaps the roles",
        "Recall is the share of reference claims that are covered",
        "**No contexts.**",
        "**No claims.**",
    ):
        assert words in text
