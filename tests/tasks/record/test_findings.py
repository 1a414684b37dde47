"""Entries of findings in a record."""

from typing import ClassVar

import pytest

from metric_core.errors import RunFolderError
from tasks.record.findings import FindingMap, FindingPart, Findings


class Weather(FindingPart):
    """An entry of a finding."""

    entry: ClassVar[str] = "weather"

    degrees: int


class Winds(FindingMap[Weather]):
    """An entry of a finding about several things."""

    entry: ClassVar[str] = "winds"


class Sky(Findings):
    """A part of a record with findings."""

    clouds: int = 0


def test_an_entry_is_found_by_its_type_and_written_as_it_was() -> None:
    content = {"clouds": 2, "weather": {"degrees": 3}, "winds": {"north": {"degrees": 1}}, "not_installed": {"a": 1}}
    read = Sky.model_validate(content)
    assert read.find(Weather) == Weather(degrees=3)
    assert read.find_all(Winds) == {"north": Weather(degrees=1)}
    assert read.to_json() == content
    assert Sky(clouds=2).with_findings(Weather(degrees=3), None).to_json() == {"clouds": 2, "weather": {"degrees": 3}}
    assert Sky().find(Weather) is None
    assert Sky().find_all(Winds) == {}


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ({"weather": {"degrees": "warm"}}, "weather.degrees: .*, got 'warm'. Evaluate the source again"),
        ({"weather": {}}, "weather.degrees: Field required. Evaluate"),
        ({"weather": []}, r"weather: .*, got \[\]"),
    ],
)
def test_a_damaged_entry_is_named(content: dict[str, object], message: str) -> None:
    with pytest.raises(RunFolderError, match=message):
        Sky.model_validate(content).find(Weather)
