"""`assay label` as users call it: pages for several people, grades, and what is refused."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.deployments.cli.conftest import Outcome
from tests.tasks import compared

Assay = Callable[..., Outcome]
ABOUT = ("--metric", "faithfulness")


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """Return the folder of a run of 40 rows."""
    monkeypatch.setenv("ASSAY_HOME", str(tmp_path / "home"))
    return str(compared.write_run(tmp_path / "run", 0.5))


def data_of(page: Path) -> dict[str, Any]:
    """Return what a page knows besides texts."""
    content = page.read_text(encoding="utf-8").partition('id="label-data">')[2].partition("</script>")[0]
    found: dict[str, Any] = json.loads(content)
    return found


def test_several_people_share_the_first_rows_and_divide_the_others(assay: Assay, run: str, tmp_path: Path) -> None:
    out = tmp_path / "label.html"
    options = ("--budget", "20", "--annotators", "2", "--overlap", "6", "--out", str(out))
    done = assay("label", run, *ABOUT, *options)
    assert done.out.split() == [str(tmp_path / f"label-{number}.html") for number in (1, 2)], done.err
    pages = [data_of(tmp_path / f"label-{number}.html") for number in (1, 2)]
    assert pages[0]["sample"] == pages[1]["sample"]
    items = [[item["item"] for item in page["items"]] for page in pages]
    assert items[0][:6] == items[1][:6]
    assert len(items[0]) == len(items[1]) == 13
    assert len({*items[0], *items[1]}) == 20
    assert {item["probability"] for page in pages for item in page["items"]} == {0.5}


def test_a_page_asks_the_question_of_its_metric(assay: Assay, run: str, tmp_path: Path) -> None:
    out, record = tmp_path / "label.html", Path(run, "run.json")
    record.write_text(record.read_text().replace('"summary":', '"question": "Is it faithful?", "summary":'))
    assert assay("label", run, *ABOUT, "--budget", "5", "--out", str(out)).code == 0
    assert {item["ask"] for item in data_of(out)["items"]} == {"Is it faithful?"}


def test_a_page_has_the_question_and_the_grades_that_are_named(assay: Assay, run: str, tmp_path: Path) -> None:
    out = tmp_path / "label.html"
    options = ("--budget", "5", "--ask", "How faithful is it?", "--out", str(out))
    assert assay("label", run, *ABOUT, *options, "--range", "1,5").code == 0
    data = data_of(out)
    assert [value for _, _, value in data["answers"]] == [1, 2, 3, 4, 5]
    assert {item["ask"] for item in data["items"]} == {"How faithful is it?"}
    again = assay("label", run, *ABOUT, *options)
    assert (again.code, "already exists, and may hold labels" in again.err) == (2, True)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--budget", "41"), "there are 40 rows to draw from"),
        (("--budget", "5", "--range", "1,50"), "grades on a page are keys from 0 to 9, got 1 to 50"),
        (("--budget", "9", "--active", "--strata", "3"), "name one of --strata, --active, --surest, --by"),
        (("--budget", "5", "--disagreement", "judges"), "the judges of a panel vote on --claims"),
        (("--budget", "5", "--disagreement", "people"), "there is no disagreement (people) about faithfulness"),
    ],
)
def test_what_cannot_be_drawn_is_a_message(
    assay: Assay, run: str, tmp_path: Path, options: tuple[str, ...], words: str
) -> None:
    done = assay("label", run, *ABOUT, "--out", str(tmp_path / "label.html"), *options)
    assert (done.code, words in done.err) == (2, True), done.err
    assert not (tmp_path / "label.html").exists()


def test_a_run_alone_is_enough_for_a_page(assay: Assay, run: str, tmp_path: Path) -> None:
    done = assay("label", run, "--out", str(tmp_path / "label.html"))
    assert "--metric faithfulness --import FILE" in " ".join(done.err.split())
    assert len(data_of(tmp_path / "label.html")["items"]) == 40  # fewer rows than are drawn by default
