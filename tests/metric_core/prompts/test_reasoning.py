"""Thoughts of reasoning models: split off when finished, a failure when not."""

import pytest

from metric_core.prompts.reasoning import split_thought


def test_a_finished_thought_is_split_off() -> None:
    cases: list[tuple[str, str | None, str]] = [
        ("yes", None, "yes"),
        ("", None, ""),
        ("  yes\n", None, "  yes\n"),
        ("<think>It does.</think>yes", "It does.", "yes"),
        ("\n<think>\nIt\ndoes.\n</think>\n\nyes", "It\ndoes.", "yes"),
        ("<think>\n\n</think>\n\nno", None, "no"),
        ("It does.\n</think>\n\nyes", "It does.", "yes"),
        ("<thinking>a</thinking> 2", "a", "2"),
        ("[THINK]a[/THINK]2", "a", "2"),
        ("<|channel>thought\na<channel|>2", "a", "2"),
        ("<think>a</think><think>b</think> yes", "a\nb", "yes"),
        ("<think>a <think>b</think> c</think> yes", "a b\nc", "yes"),
        ("Let me see. <think>a</think> yes", "Let me see. a", "yes"),
        ("<think>yes</think>", "yes", ""),
        ('<think>a</think>{"claims": []}', "a", '{"claims": []}'),
    ]
    for reply, thought, answer in cases:
        assert split_thought(reply) == (thought, answer), (reply, thought, answer)


@pytest.mark.parametrize(
    "reply",
    [
        "<think>",
        "<think>yes",
        "<think>The answer is yes.\n\nyes",
        "yes <think>or",
        "<think>a</think><think>yes",
        "[THINK]no",
    ],
)
def test_an_unfinished_thought_is_no_answer(reply: str) -> None:
    with pytest.raises(ValueError, match="unfinished reasoning"):
        split_thought(reply)


@pytest.mark.parametrize("thought", ["", "<think>a</think>\n"])
def test_marks_in_the_strings_of_a_json_reply_are_text(thought: str) -> None:
    json_reply = '{"claims": ["The tag <think> opens a thought.", "</think> ends it."]}'
    assert split_thought(thought + json_reply)[1] == json_reply
