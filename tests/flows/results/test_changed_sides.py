"""System or judge: named in all forms of a comparison."""

import io
import json
from html import unescape
from pathlib import Path

from rich.console import Console

from deployments.cli._support.print_document import print_document
from flows.results.gated_comparison import CompareOptions, compare_runs
from tasks.comparison.run_comparison import comparison_to_dict
from tasks.reports.comparison.comparison_document import comparison_document, comparison_markdown
from tasks.reports.comparison.comparison_page import comparison_page
from tests.tasks.comparison.test_changed_side import Two

WORDS = "the judge changed: the judge has another fingerprint, and 40 rows with the same texts changed by -0.200"


def test_every_form_of_a_comparison_names_what_changed(tmp_path: Path) -> None:
    runs = Two(tmp_path, 0.6, judge="small", answer="In Dublin.")
    comparison = compare_runs(runs.before, runs.after, CompareOptions())
    terminal = Console(file=io.StringIO(), width=400)
    print_document(terminal, comparison_document(comparison, 5))
    assert isinstance(terminal.file, io.StringIO)

    content = json.loads(json.dumps(comparison_to_dict(comparison)))

    assert content["changed"]["faithfulness"]["side"] == "judge"
    assert set(content["changed"]) == {"faithfulness", "noise_sensitivity"}
    for form in (terminal.file.getvalue(), comparison_markdown(comparison), unescape(comparison_page(comparison))):
        assert f"faithfulness, noise_sensitivity ↓: {WORDS}" in form
        assert form.count(WORDS) == 1


def test_runs_that_cannot_tell_say_nothing(tmp_path: Path) -> None:
    """Neither has an anchor, and nothing of the measurement changed."""
    runs = Two(tmp_path, 0.6)

    assert compare_runs(runs.before, runs.after, CompareOptions()).changed == {}
