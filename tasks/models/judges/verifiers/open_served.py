"""Open a verifier behind a server: find its model, ask the canaries, and compare it with the models seen before."""

from collections.abc import Sequence

from metric_core.errors import ConfigError, JudgeError
from tasks.model_clients.jobs import UnusableError
from tasks.model_clients.observed_model import ModelMemory, NoMemory, Traits
from tasks.model_clients.replica import Reply
from tasks.model_clients.served_model import ServedModel
from tasks.models.judges.verifiers.canaries import (
    canary_questions,
    find_order_problem,
    find_verifier_problem,
    ordered_pairs,
)
from tasks.models.judges.verifiers.probabilities import Verdict
from tasks.models.judges.verifiers.question_plan import SMALLEST_ROOM, SentenceSplitter
from tasks.models.judges.verifiers.served_engine import ServedEngine
from tasks.models.judges.verifiers.verifier_judge import VerifierJudge, VerifierModel
from tasks.options.judge_server_options import ServerJudgeOptions
from tasks.options.profile import DecisionForm, Profile
from tasks.runtime.wording import NO_REVISION


def open_served_verifier(
    profile: Profile,
    options: ServerJudgeOptions,
    splitter: SentenceSplitter,
    *,
    check_canaries: bool = True,
    memory: ModelMemory | None = None,
) -> VerifierJudge:
    """Return the judge that asks a verifier behind servers.

    Args:
        options: URLs of the servers, and how requests are made. Prompts and sampling have no effect.
        check_canaries: False only warns about a verifier that answers questions wrongly whose answers are beyond doubt.
        memory: The models that gave cached answers.

    Raises:
        ConfigError: No server can serve this profile, or the variable of the key is not set.
        JudgeError: No server can be used, or the model behind it is not that of the profile.
    """
    if profile.route is None:
        raise ConfigError(
            f"the profile {profile.name} is for a model that no server serves; set judge.backend = 'verifier', which "
            "runs it in this process"
        )
    with ServedModel.opening("judge", options) as served:
        configured = [] if options.context_window is None else [options.context_window]
        window = min([profile.chunks.window, *served.windows, *configured])
        engine = ServedEngine(profile, served, options, window)
        problems, repeated = _ask_canaries(profile, served, engine)
        if problems and check_canaries:
            raise JudgeError(f"the verifier does not answer as its profile {profile.name} says. {problems[0]}")
        served.recognize(memory or NoMemory())
        model = VerifierModel(
            "server",
            served.name,
            options.revision or NO_REVISION,
            "vLLM" if served.is_vllm else "a model server",
            str(profile.route),
            engine.has_tokenizer,
            served.place,
            served.recognized,
            repeated,
        )
        return VerifierJudge(profile, engine, model, splitter, problems)


def _ask_canaries(profile: Profile, served: ServedModel, engine: ServedEngine) -> tuple[list[str], float]:
    """Ask each replica the canaries, which also identify its model.

    Returns:
        What is wrong with their answers, and the largest difference of the answers to a repeated request.
    """
    room = engine.window - engine.overhead - profile.chunks.reserve
    if room < SMALLEST_ROOM:
        raise UnusableError(
            f"the window of {engine.window} tokens leaves {room} tokens for a premise, beside {engine.overhead} of "
            f"the form and {profile.chunks.reserve} of a claim. Serve the model with a larger window"
        )
    questions = canary_questions(profile, profile.chunks.longest_part(room), engine.count)
    ordered = ordered_pairs(profile) if isinstance(profile.form, DecisionForm) else []
    asked = engine.prepare([*([question.pair] for question in questions), *ordered], optional=True)
    served.connection.set_simplest(asked[0].request)

    def read(replies: Sequence[Reply]) -> list[Verdict]:
        return [engine.read(one, reply)[0] for one, reply in zip(asked, replies, strict=True)][: len(questions)]

    def read_model(replies: Sequence[Reply]) -> Traits:
        given = [verdict.probability for verdict in read(replies)]
        return tuple(() if p is None else (round(p, 4), round(1 - p, 4)) for p in given), profile.name

    replies = served.observe([one.request for one in asked], read_model)
    problems = [(url, find_verifier_problem(profile, questions, read(given))) for url, given in replies.items()]
    differences = [0.0]
    for url, given in replies.items() if ordered else ():
        several = zip(asked[len(questions) :], given[len(questions) :], strict=True)
        problem, difference = find_order_problem([engine.read(one, reply) for one, reply in several])
        problems.append((url, problem))
        differences.append(difference)
    return [f"{url}: {problem}" for url, problem in problems if problem is not None], max(differences)
