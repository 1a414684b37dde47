"""Ask each replica a fixed set of questions, whose replies identify the model behind it.

The questions are the same for all runs and all prompts. Replies are single labels at temperature 0, which depend less
on the arithmetic of a busy server than longer texts do: verdicts, some of them doubtful, and choices without a right
answer, where models have preferences of their own.
"""

import json
from collections.abc import Sequence

from metric_core.prompts.judge_questions import YES_NO, ChoiceQuestion, GenerateQuestion
from metric_core.prompts.prompt_set import RenderedPrompt
from metric_core.prompts.reply_schemas import CLAIMS_SCHEMA
from metric_core.question_kinds import QuestionKind
from tasks.models.clients.jobs import Request
from tasks.models.clients.observed_model import NOT_READ, Traits
from tasks.models.clients.probe_result import is_refused
from tasks.models.clients.replica import Reply
from tasks.models.judges.openai.completion import is_readable, read_completions
from tasks.models.judges.openai.reply_parsing import parse_choice_answer, parse_generate_answer
from tasks.models.judges.openai.request_body import choice_request_bodies, generate_request_body
from tasks.models.judges.openai.server_features import ServerFeatures
from tasks.options.judge_server_options import ServerJudgeOptions

CHAT = "chat/completions"
SYSTEM = "Answer with one of the words that are offered, and with nothing else."
LAST_LINE = "One word is offered after another: "

PASSAGES = (
    ("The Orla sails at noon and at six.", "The Orla sails twice a day."),
    ("The Orla sails at noon and at six.", "The Orla sails on every day of the year."),
    ("Mira said that the bridge might open again in May.", "The bridge opens again in May."),
    ("Of the forty seats in the hall, twelve are still free.", "Fewer than thirty seats are taken."),
    ("Tomas, who never drank coffee, bought a coffee house.", "Tomas dislikes coffee."),
    ("Most birds of the island can fly.", "The owls of the island can fly."),
)
_CHOICES = (
    ("Choose a number.", ("one", "two", "five", "seven", "nine", "eight")),
    ("Choose a color.", ("red", "green", "blue", "yellow", "orange", "white")),
    ("Choose an animal.", ("cat", "dog", "horse", "mouse", "fox", "owl")),
    ("Choose a city.", ("London", "Paris", "Rome", "Berlin", "Oslo", "Cairo")),
    ("Complete the sentence: the old man sat by the", ("fire", "sea", "window", "door", "river", "table")),
    ("How good is cold soup on a summer day?", ("awful", "bad", "fair", "good", "superb")),
)
_TEXT = "It rains in Tarn, and the ferry is late."
_TEXT_TASK = f'Reply with JSON that lists the claims of this sentence, as {{"claims": [string, ...]}}: {_TEXT}'
_TEXT_TOKENS = 64

QUESTIONS = (
    *(ChoiceQuestion(QuestionKind.VERDICT, {"context": text, "claim": claim}, YES_NO) for text, claim in PASSAGES),
    *(ChoiceQuestion(QuestionKind.VERDICT, {"text": task}, labels) for task, labels in _CHOICES),
)
_CLAIMS = GenerateQuestion(QuestionKind.CLAIMS, {"text": _TEXT}, CLAIMS_SCHEMA)


ALL = tuple(range(len(QUESTIONS)))
FEW = (1, 3, 5, 6, 8, 11)
"""Positions of the questions that tell whether a known server still has its model: doubtful verdicts, and choices."""


def model_requests(
    features: ServerFeatures, options: ServerJudgeOptions, positions: Sequence[int] = ALL
) -> list[Request]:
    """Return the requests whose replies identify a model: one for each question, and one for a text.

    Args:
        options: Judge options. Temperature, thinking and prompts have no effect.
        positions: The questions to ask.
    """
    plain = options.model_copy(update={"temperature": 0.0, "thinking": False, "max_output_tokens": _TEXT_TOKENS})
    asked = [QUESTIONS[position] for position in positions]
    bodies = [choice_request_bodies(_prompt(question), question, features, plain)[0] for question in asked]
    bodies.append(generate_request_body(RenderedPrompt(SYSTEM, _TEXT_TASK, ""), _CLAIMS, features, plain))
    if features.reasons:  # although it was told not to: a thought that is cut off identifies no model
        bodies = [body | {features.limit_field: options.max_output_tokens} for body in bodies]
    return [Request(CHAT, body, optional=True) for body in bodies]


def read_model(replies: Sequence[Reply], features: ServerFeatures, positions: Sequence[int] = ALL) -> Traits:
    """Return the probabilities of the labels, and the text, that a replica gives; nothing for a reply without words.

    Args:
        replies: Its replies to `model_requests` about the same positions.
    """
    *choices, last = replies
    numbers = []
    for position, reply in zip(positions, choices, strict=True):
        question = QUESTIONS[position]
        if not _identifies(reply):
            numbers.append(NOT_READ)
            continue
        answer = parse_choice_answer([reply], question.labels, 1, features)
        probabilities = answer.probabilities or ({} if answer.label is None else {answer.label: 1.0})
        numbers.append(tuple(round(probabilities.get(label, 0.0), 4) for label in question.labels))
    if not _identifies(last):
        return tuple(numbers), None
    generated = parse_generate_answer(last, CLAIMS_SCHEMA)
    text = read_completions(last)[0].text if generated.value is None else json.dumps(generated.value)
    return tuple(numbers), text[:1000]


def _identifies(reply: Reply) -> bool:
    """Return whether a reply tells something of a model: its words, or that it refuses the request."""
    return is_readable(reply) or is_refused(reply)


def _prompt(question: ChoiceQuestion) -> RenderedPrompt:
    texts = question.texts
    task = texts.get("text") or (
        f"Does the passage support the claim?\nPassage: {texts.get('context')}\nClaim: {texts.get('claim')}"
    )
    return RenderedPrompt(SYSTEM, f"{task}\n{LAST_LINE}{', '.join(question.labels)}.", "")
