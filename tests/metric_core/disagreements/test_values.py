"""Values are found in texts and compared whatever their form."""

import pytest

from metric_core.disagreements.values import Value, agree, find_values


def values_of(text: str) -> list[Value]:
    return list(find_values(text))


def texts_of(text: str) -> list[str]:
    return [text[value.start : value.end].strip() for value in find_values(text)]


def compare(one: str, other: str) -> bool | None:
    (first, *_), (second, *_) = values_of(one), values_of(other)
    return agree(first, second)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("72 hours", "3 days"),
        ("two weeks", "14 days"),
        ("90 minutes", "1.5 hours"),
        ("24 months", "two years"),
        ("30 days", "a month is one month"),
        ("half an hour", "30 minutes"),
        ("1,000 users", "1000 users"),
        ("1,000 users", "1\u00a0000 users"),
        ("1 000 users", "one thousand users"),
        ("1.000 users", "1000 users"),
        ("€2,500", "2500 euros"),
        ("$3.5M", "3.5 million dollars"),
        ("€45", "costs 45 in all"),
        ("20 %", "20 percent"),
        ("20 percent", "a share of 0.2"),
        ("50%", "half of them"),
        ("5 pm", "17:00"),
        ("9:00", "9 p.m."),
        ("noon", "12:00"),
        ("31 March 2024", "2024-03-31"),
        ("12/05/2024", "5 December 2024"),
        ("12/05/2024", "12 May 2024"),
        ("31st of March", "March 31, 2024"),
        ("twenty-five days", "25 days"),
        ("10 working days", "10 business days"),
        ("about 50 people", "52 people"),
        ("3 to 5 days", "4 days"),
        ("100 km", "62 miles"),
        ("16 GB", "16 gigabytes"),
    ],
)
def test_other_forms_of_a_value_agree(one: str, other: str) -> None:
    assert compare(one, other) is True
    assert compare(other, one) is True


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("72 hours", "48 hours"),
        ("72 hours", "2 days"),
        ("27 days", "thirty days"),
        ("two months", "three months"),
        ("€45", "€60"),
        ("2.5 million people", "2.6 million people"),
        ("20 %", "25 percent"),
        ("5 pm", "17:30"),
        ("31 March", "30 March"),
        ("13/05/2024", "14 May 2024"),
        ("in 2019", "in 2020"),
        ("3-5 days", "5-7 days"),
        ("about 50 people", "about 60 people"),
    ],
)
def test_other_values_disagree(one: str, other: str) -> None:
    assert compare(one, other) is False
    assert compare(other, one) is False


@pytest.mark.parametrize(
    ("one", "other"), [("€45", "$45"), ("5 km", "5 hours"), ("in 2024", "on 3 June"), ("20 %", "25 people")]
)
def test_other_kinds_are_not_compared(one: str, other: str) -> None:
    assert compare(one, other) is None


@pytest.mark.parametrize("text", ["See section 4 of RFC-2119.", "Step 3 uses version 1.2.3.", "Level 2 alerts of A4."])
def test_numbers_that_name_things_are_no_values(text: str) -> None:
    assert texts_of(text) == []


def test_values_are_found_in_their_order() -> None:
    text = "From 9:00 to 17:30 on 3 May, up to €1,200 or 15 % for each of two people within ten working days."
    assert texts_of(text) == ["9:00", "17:30", "3 May", "€1,200", "15 %", "two", "ten working days"]


@pytest.mark.parametrize("text", ["", "May we?", "99/99", "١٢", "²", "1" * 40, "1.2.3.4", "$", "5 to", "a one", "0:61"])
def test_odd_texts_have_no_error(text: str) -> None:
    for one in values_of(text):
        assert agree(one, one) is True
