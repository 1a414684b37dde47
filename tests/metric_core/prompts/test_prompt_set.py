"""Prompts of every kind: their order, their shared beginnings, their answer lines, their digests."""

import re
from dataclasses import replace

import pytest

from metric_core.prompts import judge_questions as q
from metric_core.prompts.judge_questions import ChoiceQuestion, GenerateQuestion
from metric_core.prompts.prompt_set import PromptSet, RenderedPrompt, load_prompts, packaged_languages
from metric_core.prompts.reply_schemas import object_schema
from metric_core.question_kinds import QuestionKind
from tests.metric_core.prompts.questions import CONTEXT, QUESTIONS, REFERENCE, RESPONSE, SAMPLE, USER_INPUT
from tests.metric_core.prompts.structure import split

PROMPTS = load_prompts()

LABELS = {
    QuestionKind.FOLLOW_UP: ["text", "question"],
    QuestionKind.CLAIMS: ["text", "question"],
    QuestionKind.QUESTIONS: ["text"],
    QuestionKind.VERDICT: ["text", "claim"],
    QuestionKind.USEFULNESS_FOR_REFERENCE: ["text", "question", "reference"],
    QuestionKind.USEFULNESS_FOR_RESPONSE: ["text", "question", "response"],
    QuestionKind.RELEVANT_SENTENCES: ["text", "question"],
    QuestionKind.KEY_POINT: ["text", "claim"],
    QuestionKind.ACCURACY_1: ["text", "question", "response"],
    QuestionKind.ACCURACY_2: ["text", "question", "reference"],
    QuestionKind.CONTEXT_RELEVANCE_1: ["text", "question"],
    QuestionKind.CONTEXT_RELEVANCE_2: ["text", "question"],
    QuestionKind.GROUNDEDNESS_1: ["text", "response"],
    QuestionKind.GROUNDEDNESS_2: ["text", "response"],
    QuestionKind.REFUSAL: ["text", "question"],
    QuestionKind.PASSAGE_RELEVANCE: ["text", "question"],
    QuestionKind.SUFFICIENCY: ["text", "question"],
    QuestionKind.EXPLANATION: ["text", "claim"],
    QuestionKind.KEY_POINT_WRITING: ["text", "question"],
    QuestionKind.INDEX_QUESTION: ["text"],
    QuestionKind.INSTANCE_RUBRIC: ["context", "reference_contexts", "question", "response", "reference", "rubric"],
}
WHOLE_SAMPLE = ["context", "reference_contexts", "question", "response", "reference"]


def render(kind: QuestionKind) -> RenderedPrompt:
    return PROMPTS.render(QUESTIONS[kind])


def test_every_kind_shows_its_texts_in_order() -> None:
    for kind in QuestionKind:
        blocks, _ = split(render(kind).user)
        assert [label for label, _ in blocks] == LABELS.get(kind, WHOLE_SAMPLE), kind
        assert {text for _, text in blocks} == set(QUESTIONS[kind].texts.values()), kind


def test_the_system_message_is_one_for_all() -> None:
    for kind in QuestionKind:
        assert render(kind).system == PROMPTS.system, kind


def test_the_last_line_says_how_to_answer() -> None:
    for kind in [kind for kind in QuestionKind if kind is not QuestionKind.VERDICT]:
        question, last = QUESTIONS[kind], render(kind).user.rsplit("\n", 1)[1]
        if isinstance(question, ChoiceQuestion):
            assert last == f"Answer one of: {', '.join(question.labels)}", kind
        else:
            assert last.startswith("Answer with JSON: {"), kind
            assert all(f'"{key}": ' in last for key in question.schema["properties"]), kind


FIRST_TEXTS = {
    QuestionKind.FOLLOW_UP: QUESTIONS[QuestionKind.FOLLOW_UP].texts["earlier_turns"],
    QuestionKind.CLAIMS: RESPONSE,
    QuestionKind.QUESTIONS: RESPONSE,
    QuestionKind.ACCURACY_1: REFERENCE,
    QuestionKind.ACCURACY_2: RESPONSE,
    QuestionKind.RELEVANT_SENTENCES: QUESTIONS[QuestionKind.RELEVANT_SENTENCES].texts["sentences"],
    QuestionKind.REFUSAL: RESPONSE,
}


def test_the_text_to_go_by_comes_first_and_alike_in_every_kind() -> None:
    for kind in QuestionKind:
        prompt, text = render(kind), FIRST_TEXTS.get(kind, CONTEXT)
        label = "text" if kind in LABELS and kind is not QuestionKind.INSTANCE_RUBRIC else "context"
        assert prompt.prefix_key == f"<quoted {label}>\n{text}\n</quoted>", kind
        assert prompt.user.startswith(prompt.prefix_key + "\n"), kind
        if label == "text":
            assert prompt.prefix_key == PROMPTS.render(q.ask_verdict("It rains.", text)).prefix_key, kind


def test_the_accuracy_prompts_begin_with_the_reference_and_with_the_response() -> None:
    texts = {"user_input": USER_INPUT, "response": RESPONSE, "reference": REFERENCE}
    first, second = (
        split(PROMPTS.render(ChoiceQuestion(kind, texts, ("0", "2", "4"))).user)
        for kind in (QuestionKind.ACCURACY_1, QuestionKind.ACCURACY_2)
    )
    assert first[0] == [("text", REFERENCE), ("question", USER_INPUT), ("response", RESPONSE)]
    assert second[0] == [("text", RESPONSE), ("question", USER_INPUT), ("reference", REFERENCE)]
    assert any("The text is the correct answer" in line for line in first[1])
    assert any("Mark the text by the reference" in line for line in second[1])


def test_a_verdict_sees_its_claim_and_its_premise_alone() -> None:
    prompt = PROMPTS.render(q.ask_verdict("It rains.", CONTEXT))
    assert split(prompt.user)[0] == [("text", CONTEXT), ("claim", "It rains.")]


def test_verdicts_on_one_premise_differ_in_the_claim_only() -> None:
    empty = PROMPTS.render(q.ask_verdict("", CONTEXT)).user
    beginning, end = empty.split("<quoted claim>\n")
    for claim in ("It rains.", "Cats sleep."):
        assert PROMPTS.render(q.ask_verdict(claim, CONTEXT)).user == f"{beginning}<quoted claim>\n{claim}{end}"
    assert beginning.endswith(" Answer one of: yes, no\n")
    assert end == "\n</quoted>"


def test_sorting_by_the_prefix_key_makes_equal_contexts_neighbours() -> None:
    questions = [q.ask_verdict(claim, premise) for claim in "abc" for premise in ("Rain.", "Rain. Sun.", "Sun.")]
    keys = [PROMPTS.render(question).prefix_key for question in sorted(questions, key=_prefix_key)]
    assert keys == [key for key in dict.fromkeys(keys) for _ in "abc"]


def _prefix_key(question: ChoiceQuestion) -> str:
    return PROMPTS.render(question).prefix_key


@pytest.mark.parametrize(
    ("first", "second"),
    [
        (QuestionKind.ACCURACY_1, QuestionKind.ACCURACY_2),
        (QuestionKind.CONTEXT_RELEVANCE_1, QuestionKind.CONTEXT_RELEVANCE_2),
        (QuestionKind.GROUNDEDNESS_1, QuestionKind.GROUNDEDNESS_2),
    ],
)
def test_the_two_wordings_of_a_rating_are_independent(first: QuestionKind, second: QuestionKind) -> None:
    for prompts in map(load_prompts, packaged_languages()):
        sentences = [_sentences(prompts.wordings[kind]) for kind in (first, second)]
        assert min(map(len, sentences)) > 2, prompts.language
        assert not sentences[0] & sentences[1], prompts.language
        assert prompts.digest(first) != prompts.digest(second)


def _sentences(wording: str) -> set[str]:
    lines = [line for line in wording.split("\n") if not line.startswith("{")]
    parts = [part.strip() for line in lines for part in re.split(r"[.?:।]", line)]
    return {part for part in parts if part and not part.isdigit()}


def test_a_text_that_is_not_there_takes_its_line_with_it() -> None:
    with_question, without = (
        PROMPTS.render(q.ask_claims(RESPONSE, USER_INPUT)),
        PROMPTS.render(q.ask_claims(RESPONSE, None)),
    )
    assert with_question.user != without.user
    assert with_question.user.replace(f"<quoted question>\n{USER_INPUT}\n</quoted>\n", "") == without.user


def test_a_sample_shows_the_texts_that_it_has() -> None:
    question = ChoiceQuestion(QuestionKind.ASPECT, {"response": RESPONSE}, q.YES_NO, {"definition": "Is it kind?"})
    blocks, outside = split(PROMPTS.render(question).user)
    assert blocks == [("response", RESPONSE)]
    assert "definition: Is it kind?" in outside


def test_a_text_of_an_unknown_role_is_fenced_under_its_role() -> None:
    question = ChoiceQuestion(QuestionKind.ASPECT, {"plan": "Go.", **SAMPLE}, q.YES_NO, {"definition": "Is it kind?"})
    assert split(PROMPTS.render(question).user)[0][-1] == ("plan", "Go.")


def test_instructions_are_shown_as_they_are_and_never_filled_in() -> None:
    definition = "Is {claim} or {answer} or $claim {0} %s fine?\n\\1 {texts}"
    question = replace(QUESTIONS[QuestionKind.ASPECT], instructions={"definition": definition})
    assert f"\ndefinition: {definition}\n" in PROMPTS.render(question).user


@pytest.mark.parametrize("kind", [QuestionKind.ASPECT, QuestionKind.RUBRIC, QuestionKind.CRITERIA_NUMBER])
def test_a_question_without_its_instructions_is_refused(kind: QuestionKind) -> None:
    with pytest.raises(ValueError, match=f"{kind} needs instructions"):
        PROMPTS.render(replace(QUESTIONS[kind], instructions={}))


@pytest.mark.parametrize(
    "texts",
    [
        {"claim": "It rains."},
        {"context": "Rain."},
        {},
        {"context": "Rain.", "claim": "It rains.", "response": "It rains."},
    ],
)
def test_a_question_with_other_texts_than_its_kind_has_is_refused(texts: dict[str, str]) -> None:
    with pytest.raises(ValueError, match="kind verdict has the texts context, claim, got"):
        PROMPTS.render(ChoiceQuestion(QuestionKind.VERDICT, texts, q.YES_NO))


def test_two_texts_under_one_label_are_refused() -> None:
    texts = {"context": "Rain.", "contexts": "Rain.", "claim": "It rains."}
    with pytest.raises(ValueError, match="two texts have the label 'context'"):
        PROMPTS.render(ChoiceQuestion(QuestionKind.VERDICT, texts, q.YES_NO))


def test_prompt_names_the_number_of_questions() -> None:
    assert "Write 5 different questions" in PROMPTS.render(q.ask_questions(RESPONSE, 5)).user


def test_prompt_names_the_verdict_to_explain() -> None:
    assert "\nverdict: no\n" in PROMPTS.render(q.ask_explanation("It rains.", "Sun.", "no")).user
    with pytest.raises(ValueError, match="must be one of yes, no, got 'maybe'"):
        q.ask_explanation("It rains.", "Sun.", "maybe")


def test_prompt_lists_the_allowed_scores() -> None:
    question = GenerateQuestion(QuestionKind.RUBRIC, {"reference": REFERENCE}, _SCALE, {"score1_description": "good"})
    assert PROMPTS.render(question).user.endswith('Answer with JSON: {"feedback": string, "score": 0.5 | 1}')


_SCALE = object_schema({"feedback": {"type": "string"}, "score": {"enum": [0.5, 1]}})


@pytest.mark.parametrize("name", ["system", "answer_choice", "answer_json", "verdict"])
def test_a_digest_changes_with_every_file_that_makes_the_prompt(name: str) -> None:
    changed = PromptSet("en", {**PROMPTS.wordings, name: PROMPTS.wordings[name] + " "})
    assert changed.digest(QuestionKind.VERDICT) != PROMPTS.digest(QuestionKind.VERDICT)


def test_a_digest_does_not_change_with_other_kinds_or_the_name_of_the_language() -> None:
    changed = PromptSet("mine", {**PROMPTS.wordings, "claims": "Other."})
    assert changed.digest(QuestionKind.VERDICT) == PROMPTS.digest(QuestionKind.VERDICT)
    assert len({PROMPTS.digest(kind) for kind in QuestionKind}) == len(QuestionKind)


def test_a_digest_changes_with_the_rendering(monkeypatch: pytest.MonkeyPatch) -> None:
    before = PROMPTS.digest(QuestionKind.VERDICT)
    monkeypatch.setattr("metric_core.prompts.prompt_set.RENDERING_VERSION", 1000)
    assert PROMPTS.digest(QuestionKind.VERDICT) != before
