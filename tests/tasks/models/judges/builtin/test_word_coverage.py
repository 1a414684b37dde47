"""The table of the page on judges, beside what the built-in judge gives today."""

from pathlib import Path

import pytest

from benchmarks.labelled_examples import DATA
from benchmarks.word_coverage import BEGIN, END, SETS, measure
from tasks.models.recognizers.spacy_pipeline import SpacyPipeline
from tasks.opening.run_models import RunModels
from tasks.options.judged_settings import JudgedSettings

PAGE = Path(__file__).parents[5] / "docs" / "judge.md"
SMALL = ("AttributionBench, LFQA", "AttributionBench, AttributedQA", "AttributionBench, AttrScore-GenSearch")


def _table() -> dict[str, list[str]]:
    text = PAGE.read_text(encoding="utf-8").partition(BEGIN)[2].partition(END)[0]
    rows = [
        [cell.strip() for cell in line.strip("|").split("|")] for line in text.splitlines() if line.startswith("| ")
    ]
    return {row[0]: row[1:] for row in rows[1:]}


def test_the_table_has_every_set() -> None:
    assert list(_table()) == [labelled.name for labelled in SETS]


@pytest.mark.skipif(not DATA.is_dir(), reason="the labelled data is not beside the repository")
@pytest.mark.parametrize("name", SMALL)
def test_the_table_says_what_the_judge_gives(name: str) -> None:
    (labelled,) = [each for each in SETS if each.name == name]
    judge = RunModels().open_judges(JudgedSettings())
    line = measure(judge, SpacyPipeline(), labelled)
    rows, agreement, coverage, *_ = [cell.strip() for cell in line.strip().strip("|").split("|")][1:]
    written = _table()[name]
    assert rows == written[0]
    assert coverage == written[2]
    # Another build of the embedder's runtime may move the last digit.
    assert float(agreement.split()[0]) == pytest.approx(float(written[1].split()[0]), abs=0.011)
