"""Read what the report of a run says of its judge."""

from pathlib import Path

from tasks.reports.run.report_page import write_report
from tests.tasks.reports.parsed_page import Page


def text_on_judge(folder: Path) -> str:
    """Write the report of a run, and return the text of its section on the judge."""
    text = Page(write_report(folder).read_text(encoding="utf-8")).text
    return text[text.index("Judge and provenance") :]
