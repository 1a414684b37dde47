"""Slices in a comparison as Markdown."""

from pathlib import Path

from tests.tasks.reports.test_comparison_text import compare_by_hostile_names, count_names


def test_names_of_slices_are_no_markup(tmp_path: Path) -> None:
    assert count_names(compare_by_hostile_names(tmp_path)) > 5
