"""Tests of verdicts on everyday statements: a paraphrase is supported, a claim with a changed fact is not.

None of these pairs was used for fitting.
"""

import pytest

from metric_core.prompts.judge_questions import ask_verdict
from tasks.models.embedders.minilm import MiniLm
from tasks.models.judges.builtin.builtin_judge import BuiltinJudge
from tasks.models.recognizers.spacy_pipeline import SpacyPipeline

pytestmark = pytest.mark.models

SUPPORTED = [
    ("Permanent staff have 28 vacation days a year.", "Permanent staff get 28 days of vacation per year."),
    ("Permanent staff have 28 vacation days a year.", "Permanent staff have twenty-eight vacation days every year."),
    ("Timesheets are due on the 5 October.", "Timesheets are due on October 5th."),
    ("Orders over $1,500 are approved by Rita Olsen.", "Rita Olsen approves orders over 1500 dollars."),
    ("Employees may not smoke in the building.", "Smoking in the building is not allowed for employees."),
    ("The probation period lasts six months.", "The probation period is 6 months long."),
    ("Travel to Madrid is booked by the front desk.", "The front desk books travel to Madrid."),
    ("Bicycles can be parked in the garage for free.", "Bicycles can be parked for free in the garage."),
    ("Meetings longer than an hour need an agenda.", "An agenda is needed for meetings longer than an hour."),
    ("The helpdesk answers within 4 hours on working days.", "On working days the helpdesk answers within four hours."),
    ("Unused gift cards can\u0020not be refunded.", "Unused gift cards cannot be refunded."),
    ("The pension contribution is 5% of gross pay.", "The pension contribution is 5 percent of gross pay."),
    ("Laptops are replaced every four years by the IT team.", "Every 4 years the IT team replaces laptops."),
]

NOT_SUPPORTED = [
    ("Permanent staff have 28 vacation days a year.", "Permanent staff have 24 vacation days a year."),
    ("Permanent staff have 28 vacation days a year.", "Temporary staff have 28 vacation days a year."),
    ("Timesheets are due on the 5 October.", "Timesheets are due on 15 October."),
    ("Timesheets are due on the 5 October.", "Timesheets are due on November 5."),
    ("Orders over $1,500 are approved by Rita Olsen.", "Orders over $1,500 are approved by Jonas Falk."),
    ("Orders over $1,500 are approved by Rita Olsen.", "Orders over $5,100 are approved by Rita Olsen."),
    ("Employees may not smoke in the building.", "Employees may smoke in the building."),
    ("The probation period lasts six months.", "The probation period lasts six weeks."),
    ("The probation period lasts six months.", "The probation period lasts nine months."),
    ("Travel to Madrid is booked by the front desk.", "Travel to Lisbon is booked by the front desk."),
    ("Bicycles can be parked in the garage for free.", "Bicycles can\u0020not be parked in the garage."),
    ("Meetings longer than an hour need an agenda.", "Meetings shorter than an hour need an agenda."),
    ("The helpdesk answers within 4 hours on working days.", "The helpdesk answers within 8 hours on working days."),
    ("Unused gift cards can\u0020not be refunded.", "Unused gift cards can be refunded."),
    ("The pension contribution is 5% of gross pay.", "The pension contribution is 5% of net pay."),
    ("Laptops are replaced every four years by the IT team.", "Laptops are never replaced by the IT team."),
    ("Laptops are replaced every four years by the IT team.", "The canteen is closed on Fridays."),
]


@pytest.fixture(scope="module")
def judge() -> BuiltinJudge:
    return BuiltinJudge(MiniLm(), SpacyPipeline())


@pytest.mark.parametrize(("premise", "claim"), SUPPORTED)
def test_a_paraphrase_is_supported(judge: BuiltinJudge, premise: str, claim: str) -> None:
    assert judge.choose([ask_verdict(claim, premise)])[0].label == "yes"


@pytest.mark.parametrize(("premise", "claim"), NOT_SUPPORTED)
def test_a_changed_fact_is_not_supported(judge: BuiltinJudge, premise: str, claim: str) -> None:
    assert judge.choose([ask_verdict(claim, premise)])[0].label == "no"


@pytest.mark.parametrize(("premise", "claim"), SUPPORTED)
def test_a_paraphrase_is_found_among_other_sentences(judge: BuiltinJudge, premise: str, claim: str) -> None:
    passage = (
        "This handbook is for everyone who works at the company. It was last changed by the works council. "
        f"{premise} Questions are answered by the people team. New colleagues get a tour of the premises."
    )
    assert judge.choose([ask_verdict(claim, passage)])[0].label == "yes"
