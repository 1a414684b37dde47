"""Cost of the prompts of a sample: tokens sent, and tokens that a prefix cache does not already hold."""

from collections.abc import Iterable

from metric_core.prompts import judge_questions as q
from metric_core.prompts.judge_questions import ChoiceQuestion, JudgeQuestion
from metric_core.prompts.prompt_set import load_prompts
from metric_core.question_kinds import QuestionKind
from tests.metric_core.prompts.questions import QUESTIONS

PROMPTS = load_prompts()
CHARACTERS_A_TOKEN = 4
WORDS = (
    "ferry",
    "crosses",
    "harbour",
    "hour",
    "carries",
    "cars",
    "operator",
    "plans",
    "second",
    "line",
    "islands",
    "spring",
    "demand",
    "visitors",
    "grew",
    "third",
    "terminal",
    "opened",
    "market",
    "captain",
    "winter",
    "storm",
    "ticket",
    "price",
    "families",
    "summer",
    "evening",
    "bridge",
    "repaired",
    "city",
    "council",
)


def text(seed: int, characters: int) -> str:
    """Words in an order of their own for every seed."""
    words = [WORDS[(seed * 7 + i * (seed % 5 + 3) + i * i) % len(WORDS)] for i in range(characters)]
    return f"{seed} {' '.join(words)}"[: characters - 1] + "."


def sample_questions(seed: int) -> list[JudgeQuestion]:
    """Every question of the eleven metrics about a sample of 4 contexts and 4 claims a side, the whole matrix asked."""
    seed *= 100
    contexts = [text(seed + i, 800) for i in range(4)]
    claims = {side: [text(seed + 10 * side + i, 65) for i in range(4)] for side in (1, 2)}
    response, reference, user_input = " ".join(claims[1]), " ".join(claims[2]), text(seed + 30, 65)
    joined, answers = "\n".join(contexts), {"response": response, "reference": reference}
    ratings = [
        *((kind, {"user_input": user_input, **answers}) for kind in (QuestionKind.ACCURACY_1, QuestionKind.ACCURACY_2)),
        (QuestionKind.CONTEXT_RELEVANCE_1, {"contexts": joined, "user_input": user_input}),
        (QuestionKind.CONTEXT_RELEVANCE_2, {"contexts": joined, "user_input": user_input}),
        (QuestionKind.GROUNDEDNESS_1, {"contexts": joined, "response": response}),
        (QuestionKind.GROUNDEDNESS_2, {"contexts": joined, "response": response}),
    ]
    return [
        q.ask_claims(response, user_input),
        q.ask_claims(reference, user_input),
        q.ask_questions(response, 3),
        *(ChoiceQuestion(kind, texts, ("0", "1", "2")) for kind, texts in ratings),
        *(q.ask_verdict(claim, premise) for premise in (joined, *contexts) for claim in claims[1] + claims[2]),
        *(q.ask_verdict(claim, reference) for claim in claims[1]),
        *(q.ask_verdict(claim, response) for claim in claims[2]),
        *(q.ask_usefulness_for_reference(context, user_input, reference) for context in contexts),
    ]


def messages(questions: Iterable[JudgeQuestion]) -> list[str]:
    prompts = [PROMPTS.render(question) for question in questions]
    return [f"{prompt.system}\n{prompt.user}" for prompt in prompts]


def tokens(texts: Iterable[str], cached: Iterable[str] = ()) -> tuple[float, float]:
    """Tokens of the texts, and those of them with which no earlier text begins; sorted, neighbours share most."""
    before = sorted([*cached, *texts])
    asked = set(texts)
    total = fresh = 0
    for previous, current in zip(["", *before], before, strict=False):
        if current in asked:
            shared = next((i for i, (a, b) in enumerate(zip(previous, current, strict=False)) if a != b), len(previous))
            total, fresh = total + len(current), fresh + len(current) - shared
    return total / CHARACTERS_A_TOKEN, fresh / CHARACTERS_A_TOKEN


def test_a_sample_stays_within_its_budget() -> None:
    questions = sample_questions(2)
    assert len(questions) == 61
    sent, uncached = tokens(messages(questions), cached=messages(sample_questions(1)))
    assert sent <= 68_000
    assert uncached <= 3_800


def test_a_verdict_adds_little_to_its_premise() -> None:
    prompt = PROMPTS.render(q.ask_verdict("", "Rain."))
    assert (len(prompt.user) - len(prompt.prefix_key)) / CHARACTERS_A_TOKEN <= 60


def test_fixed_wording_is_short() -> None:
    for kind in QuestionKind:
        fixed = len(PROMPTS.render(QUESTIONS[kind]).user) - sum(map(len, QUESTIONS[kind].texts.values()))
        assert fixed / CHARACTERS_A_TOKEN <= 160, kind
