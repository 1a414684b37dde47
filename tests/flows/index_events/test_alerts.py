"""Links to pages in alerts."""

from pathlib import Path

import pytest

from flows.config.deploy_options import AlertSettings
from flows.index_events.alerts import link_to

FOLDER = Path("/runs/räder #1")


@pytest.mark.parametrize(
    ("link", "found"),
    [
        (None, FOLDER.joinpath("page.html").as_uri()),
        ("https://reports.example/{name}/", "https://reports.example/r%C3%A4der%20%231/page.html"),
        ("https://reports.example{folder}", "https://reports.example/runs/r%C3%A4der%20%231/page.html"),
    ],
)
def test_link_works_for_any_folder_name(link: str | None, found: str) -> None:
    assert link_to(FOLDER, "page.html", AlertSettings(link=link)) == found
