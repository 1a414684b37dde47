"""Planted changes of a claim and its passages: what each makes of the texts, and where it finds nothing to change."""

import pytest

from metric_core.calibration.planted_changes import CHANGES, CheckedClaim, Effect
from metric_core.parsing.model_families import family_of

BY_NAME = {change.name: change for change in CHANGES}
MUSEUM = CheckedClaim(
    "In 1887 the museum was opened by Marta Kole because many asked.",
    ("Marta Kole opened it in 1887. It is old.", "It rains."),
    (("The museum was opened.",), ("Soup is served.",)),
    "Qwen/Qwen3-8B",
)


@pytest.mark.parametrize(
    ("name", "claim"),
    [
        ("paraphrase", "In 1887 the museum was opened by Marta Kole since numerous asked."),
        ("number", "In 4887 the museum was opened by Marta Kole because many asked."),
        ("name", "In 1887 the museum was opened by Ismarra because many asked."),
        ("negation", "In 1887 the museum was not opened by Marta Kole because many asked."),
        ("language", f"Bitte prüfe die folgende Aussage: {MUSEUM.claim}"),
        (
            "own style",
            f"Sure! Here is the answer:\n\n{MUSEUM.claim}\n\nIf you have any further questions, feel free to ask!",
        ),
    ],
)
def test_a_change_of_the_claim_leaves_the_passages(name: str, claim: str) -> None:
    changed = BY_NAME[name].apply(MUSEUM)
    assert changed is not None
    assert (changed.claim, changed.passages) == (claim, MUSEUM.passages)


def test_a_change_of_the_passages_leaves_the_claim() -> None:
    changed = {name: BY_NAME[name].apply(MUSEUM) for name in ("order", "padding", "format", "injection", "evidence")}
    assert all(each is not None and each.claim == MUSEUM.claim for each in changed.values())
    passages = {name: each.passages for name, each in changed.items() if each is not None}
    assert passages["order"] == MUSEUM.passages[::-1]
    assert passages["format"][0] == "## Passage 1\n\n- Marta Kole opened it in 1887.\n- It is old."
    assert passages["evidence"] == ("Soup is served.",)  # of the others, the one with the fewest words of the claim
    assert passages["padding"][0].endswith(MUSEUM.passages[0])
    assert passages["padding"][1].startswith(MUSEUM.passages[1])
    assert passages["injection"][1].startswith("It rains.\nNote to whoever")


def test_a_change_that_finds_nothing_to_change_leaves_the_question_out() -> None:
    bare = CheckedClaim("it rains.", ("It rains.",))
    assert {name for name, change in BY_NAME.items() if change.apply(bare) is None} == {
        *("order", "number", "name", "negation", "evidence")
    }


@pytest.mark.parametrize(
    ("claim", "negated"),
    [
        ("It was not opened.", "It was opened."),
        ("It isn't open.", "It is open."),
        ("It has a roof.", "It has not a roof."),
        ("It never rains.", "It rains."),
    ],
)
def test_a_negation_is_put_in_or_taken_out(claim: str, negated: str) -> None:
    changed = BY_NAME["negation"].apply(CheckedClaim(claim, ("It rains.",)))
    assert changed is not None
    assert changed.claim == negated


def test_another_number_is_in_no_passage() -> None:
    passages = ("4 halls, 5 trams, 6 mills, 7 lakes, 8 hills and 9 inns.",)
    assert BY_NAME["number"].apply(CheckedClaim("There are 1 halls.", passages)) is None
    changed = BY_NAME["number"].apply(CheckedClaim("There are 2 halls.", ("3 halls", "6 halls")))
    assert changed is not None
    assert changed.claim == "There are 5 halls."


def test_names_of_changes_are_unique_and_both_effects_occur() -> None:
    assert len(BY_NAME) == len(CHANGES)
    assert {change.effect for change in CHANGES} == set(Effect)


def test_a_distilled_model_belongs_to_the_family_that_its_name_begins_with() -> None:
    assert family_of("deepseek-r1-distill-llama-70b") == "deepseek"
    assert family_of("meta-llama/Llama-3.1-8B") == "meta"
    assert family_of("my-model") is None
