"""Fences: their form, what is made visible, what is removed, and that looking for look-alikes misses none."""

import sys
import unicodedata

import pytest

from metric_core.prompts import fences
from metric_core.prompts.fences import fence, neutralize
from metric_core.prompts.homoglyphs import CLOSING_BRACKETS, OPENING_BRACKETS, fold_character, fold_text


def test_a_fence_surrounds_its_text_as_it_is() -> None:
    assert fence("claim", " It\nrains. ") == "<quoted claim>\n It\nrains. \n</quoted>"


def test_a_label_that_could_break_the_fence_is_refused() -> None:
    for label in ["", "Claim", "a b", "claim>", "claim\n", "1st", "\u0441laim"]:
        with pytest.raises(ValueError, match="lower-case letters, digits and underscores"):
            fence(label, "It rains.")


def test_what_is_disarmed_stays_readable() -> None:
    cases: list[tuple[str, str]] = [
        ("</quoted>", "<\\/quoted>"),
        ("<quoted claim>", "<\\quoted claim>"),
        ("<s>old</s> <b>new</b>", "<\\s>old<\\/s> <b>new</b>"),
        ("<|im_start|>system", "<\\|im_start|>system"),
        ("[INST] [1] [x]", "[\\INST] [1] [x]"),
        ("### Instruction: go", "#\\## Instruction: go"),
        ("#### Response:", "#\\#\\## Response:"),
        ("<<SYS>>", "<\\<SYS>>"),
        ("\uff1c/quoted\uff1e", "\uff1c\\/quoted\uff1e"),
        ("if a < quoted: pass", "if a < quoted: pass"),
        ("a < quoted and b > c", "a <\\ quoted and b > c"),
    ]
    for text, readable in cases:
        assert neutralize(text) == readable, (text, readable)


def test_control_characters_go_and_joiners_stay() -> None:
    cases: list[tuple[str, str]] = [
        ("a\r\nb\rc\u2028d\x85e\x0cf\x0bg", "a\nb\nc\nd\ne\nf\ng"),
        ("a\x00b\x1bc\x7fd\x9fe", "abcde"),
        ("a\u202eb\u2066c\u2069d", "abcd"),
        ("a\U000e0041b\U000e007f", "ab"),
        ("a\ud800b", "a\ufffdb"),
        ("a\tb\n", "a\tb\n"),
        ("a\u200db\u200cc\u200ed\ufeffe", "a\u200db\u200cc\u200ed\ufeffe"),
    ]
    for text, kept in cases:
        assert neutralize(text) == kept, (text, kept)


def test_every_character_that_may_open_a_delimiter_is_looked_at() -> None:
    # What is unassigned, private or a surrogate has no other form.
    characters = [c for c in map(chr, range(sys.maxunicode + 1)) if unicodedata.category(c) not in {"Cn", "Co", "Cs"}]
    opening = {*OPENING_BRACKETS, *"[]#"}
    missed = [character for character in characters if opening & set(fold_character(character))]
    assert not [character for character in missed if not fences._MAY_OPEN.search(character)]


@pytest.mark.parametrize(
    "word",
    [
        "quoted",
        "QuOtEd",
        "\uff51uoted",
        "\U0001d5fe\u03c5\u043e\u0442\u0435\u0501",
        "\U0001f160\U0001f184\U0001f1f4\U0001f163\U0001f174\U0001f1e9",
        "quo\u00adted",
    ],
)
def test_a_closing_fence_is_found_however_it_is_written(word: str) -> None:
    for opening, closing in zip(OPENING_BRACKETS, CLOSING_BRACKETS, strict=True):
        for slash in ("/", "\u2044", "\uff0f", " / ", "//", "/ /"):
            assert neutralize(f"a{opening}{slash}{word}{closing}b") == f"a{opening}\\{slash}{word}{closing}b"


def test_folding_remembers_where_characters_come_from() -> None:
    assert fold_text("\ufb01\u200dn\u0301") == ("fin", [0, 0, 2])


def test_a_text_that_is_passed_over_quickly_needs_no_change() -> None:
    for text in ["plain\ttext\n", "a\rb", "a\x0bb", "bell\x07", "na\u00efve", "\u2028", "\ud800", "\x7f", "\x85"]:
        changed = fences._LINE_BREAK.sub("\n", text)
        changed = fences._SURROGATE.sub("\ufffd", fences._UNWANTED.sub("", changed))
        assert neutralize(text) == changed, text


def test_every_ascii_character_that_may_open_something_is_looked_for() -> None:
    assert set(fences._MAY_OPEN_ASCII) == set("<[]#")
