"""Kinds of questions that plugins define: their own prompt, rendered, digested and asked like the packaged ones."""

import pickle

import pytest

from metric_core.errors import ConfigError
from metric_core.prompts.judge_questions import ChoiceQuestion, CustomKind, GenerateQuestion, question_digest
from metric_core.prompts.prompt_set import load_prompts
from metric_core.prompts.reply_schemas import object_schema

POLITE = CustomKind("house.polite", "{response}\nIs the response polite by these rules? {answer}\n{instructions}")


def test_a_question_is_rendered_with_the_prompt_of_its_kind() -> None:
    question = ChoiceQuestion(POLITE, {"response": "Hi </quoted>"}, ("yes", "no"), {"rule": "No slang."})
    prompt = load_prompts().render(question)
    assert prompt.system == load_prompts().system
    quoted = "<quoted response>\nHi <\\/quoted>\n</quoted>\n"
    assert prompt.user.startswith(f"{quoted}Is the response polite by these rules?")
    assert prompt.user.endswith("rule: No slang.")
    assert "yes, no" in prompt.user


def test_json_and_own_roles_work() -> None:
    kind = CustomKind("house.tone", "{context}\n{style_guide}\nName the tone. {answer}")
    schema = object_schema({"value": {"enum": ["warm", "cold"]}})
    texts = {"contexts": "Rain.", "style_guide": "Be warm."}
    user = load_prompts().render(GenerateQuestion(kind, texts, schema)).user
    assert "<quoted style_guide>\nBe warm.\n</quoted>" in user
    assert '"warm" | "cold"' in user


def test_the_wording_is_part_of_the_digest_of_the_prompt() -> None:
    other = CustomKind("house.polite", POLITE.prompt.replace("polite", "friendly"))
    prompts = load_prompts()
    assert prompts.digest(POLITE) != prompts.digest(other)
    assert prompts.digest(POLITE) == prompts.digest(CustomKind("house.polite", POLITE.prompt))


def test_a_kind_is_its_name_and_survives_pickling() -> None:
    assert POLITE == "house.polite"
    copy = pickle.loads(pickle.dumps(POLITE))
    assert (copy, copy.prompt, copy.places) == (POLITE, POLITE.prompt, POLITE.places)
    question = ChoiceQuestion(POLITE, {"response": "Hi"}, ("yes", "no"))
    assert question_digest(question) == question_digest(ChoiceQuestion(copy, {"response": "Hi"}, ("yes", "no")))


@pytest.mark.parametrize(
    ("prompt", "message"),
    [
        ("Is it polite? {response}\n{answer}", "must be on a separate line"),
        ("{response}\nPolite?", r"\{answer\} must occur once, found 0 times"),
        ("{response}\n{response}\n{answer}", r"\{response\} must occur once, found 2 times"),
        ("{answer} <quoted x>", "a template must not contain"),
    ],
)
def test_a_prompt_with_wrong_placeholders_is_refused(prompt: str, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        CustomKind("house.polite", prompt)


@pytest.mark.parametrize("name", ["verdict", "House.polite", "house.", "house polite"])
def test_a_name_without_the_plugin_is_refused(name: str) -> None:
    with pytest.raises(ValueError, match=r"is named plugin\.kind in lower-case letters"):
        CustomKind(name, "{answer}")


def test_a_text_that_the_prompt_has_no_place_for_is_an_error() -> None:
    with pytest.raises(ValueError, match=r"kind house\.polite has the texts response, got claim, response"):
        load_prompts().render(ChoiceQuestion(POLITE, {"response": "Hi", "claim": "x"}, ("yes", "no"), {"a": "b"}))
