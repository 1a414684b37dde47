"""Parts of premises are those that the makers' code makes of the same sentences."""

from collections.abc import Sequence

import pytest

from tasks.models.judges.verifiers.sentence_parts import make_parts
from tasks.options.load_profile import load_profile
from tasks.options.profile import SentenceParts
from tests.tasks.models.judges.verifiers.conftest import split_at_stops

MINICHECK, FACTCG = SentenceParts(most=20), SentenceParts(most=20, unit="marks", between="\n", keeps_lines=False)


def count_bytes(texts: Sequence[str]) -> list[int]:
    return [len(text) for text in texts]


def parts(rules: SentenceParts, premise: str) -> tuple[str, ...]:
    return make_parts(rules, [premise], split_at_stops, count_bytes)[0]


@pytest.mark.parametrize(
    ("premise", "joined"),
    [
        ("It rains.  It pours.", "It rains. It pours."),
        ("Weather\nIt rains. It pours.\nEnd", "Weather\nIt rains. It pours.\nEnd"),
        ("It rains.\n  It pours.", "It rains.\n  It pours."),
        ("It rains.\n\nIt pours.", "It rains.\n\n It pours."),  # what the makers' replacement of " \n " leaves
        ("\nIt rains.\n", "It rains."),
    ],
)
def test_minicheck_joins_sentences_by_spaces_and_keeps_lines(premise: str, joined: str) -> None:
    assert parts(MINICHECK, premise) == (joined,)


def test_factcg_joins_sentences_by_line_breaks() -> None:
    assert parts(FACTCG, "It rains. It\npours. It ends.") == ("It rains.\nIt\npours.\nIt ends.",)


def test_parts_end_with_the_last_sentence_that_fits() -> None:
    eight = "It rains in the town at nine today."
    assert parts(MINICHECK, " ".join([eight] * 5)) == (f"{eight} {eight}", f"{eight} {eight}", eight)
    long = f"{'very ' * 30}wet."
    assert parts(MINICHECK, f"{eight} {long} {eight}") == (eight, long, eight), "a longer sentence stands alone"
    assert parts(MINICHECK, " \n ") == ()


def test_marks_count_as_the_makers_tokens_do() -> None:
    """Twelve and seven tokens of the Penn Treebank: `isn't` is two, `3,000` and `U.S.` are one."""
    twelve, seven = "The fee is $40.50 a year, isn't it?", "3,000 in the U.S. pay it."
    fits, exceeds = (SentenceParts(most=most, unit="marks") for most in (19, 18))
    split = [[twelve, seven]]
    assert make_parts(fits, [f"{twelve} {seven}"], lambda _: split, count_bytes) == [(f"{twelve} {seven}",)]
    assert make_parts(exceeds, [f"{twelve} {seven}"], lambda _: split, count_bytes) == [(twelve, seven)]


@pytest.mark.parametrize(
    ("name", "most", "unit"),
    [("minicheck-ft5", 500, "words"), ("minicheck-7b", 32468, "tokens"), ("factcg", 550, "marks")],
)
def test_profiles_make_the_parts_of_their_makers(name: str, most: int, unit: str) -> None:
    rules = load_profile(name).chunks.parts
    assert rules is not None
    assert (rules.most, rules.unit) == (most, unit)


def test_what_is_short_needs_no_count() -> None:
    def count(texts: Sequence[str]) -> list[int]:
        raise AssertionError(f"counted {texts}")

    rules = SentenceParts(most=1000, unit="tokens")
    assert make_parts(rules, ["It rains. It pours."], split_at_stops, count) == [("It rains. It pours.",)]
