"""The anchor of runs on the page of a history."""

from tasks.reports.history.history_page import history_page
from tests.tasks.history.recorded import nights
from tests.tasks.reports.test_history_page import data_of, no_report


def test_the_script_gets_the_means_of_the_anchor() -> None:
    data = data_of(history_page("nightly", nights(12), [], no_report))
    assert data["anchor"] == {"faithfulness": [7100] * 12}
