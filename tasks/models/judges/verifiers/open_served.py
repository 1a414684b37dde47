"""Open a verifier behind a server: find its model, ask the canaries, and compare it with the models seen before."""

from collections.abc import Sequence

from metric_core.errors import ConfigError, JudgeError
from tasks.models.clients.jobs import Request, UnusableError
from tasks.models.clients.observed_model import NOT_READ, ModelMemory, NoMemory, Traits
from tasks.models.clients.replica import Reply
from tasks.models.clients.served_model import ServedModel
from tasks.models.judges.verifiers.canaries import (
    canary_questions,
    find_order_problem,
    find_verifier_problem,
    ordered_pairs,
)
from tasks.models.judges.verifiers.probabilities import Verdict, decision_support
from tasks.models.judges.verifiers.prompt_formats import DECISION_ROUTES, decision_body
from tasks.models.judges.verifiers.question_plan import SMALLEST_ROOM, SentenceSplitter
from tasks.models.judges.verifiers.served_engine import ServedEngine
from tasks.models.judges.verifiers.verifier_judge import VerifierJudge, VerifierModel
from tasks.options.judge_server_options import ServerJudgeOptions
from tasks.options.profile import DecisionForm, DecisionReading, Profile
from tasks.runtime.usage import Usage
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
        profile = _find_route(profile, served)
        configured = [] if options.context_window is None else [options.context_window]
        window = min([profile.chunks.window, *served.windows, *configured])
        engine = ServedEngine(profile, served, options, window)
        problems, repeated = _ask_canaries(profile, served, engine, check_canaries=check_canaries)
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
            engine.unknown,
        )
        return VerifierJudge(profile, engine, model, splitter, problems)


def _find_route(profile: Profile, served: ServedModel) -> Profile:
    """Return a profile with the endpoint that answers typed questions, where the profile leaves it open.

    Raises:
        UnusableError: No server answers at one of the endpoints.
    """
    if profile.route != "probed" or not isinstance(profile.form, DecisionForm):
        return profile
    canary = profile.canaries[0]
    replies = served.connection.send(
        [
            Request(route, decision_body(profile.form, route, served.name, canary.premise, [canary.claim]), "", True)
            for route in DECISION_ROUTES
        ]
    )
    found = []
    for route, reply in zip(DECISION_ROUTES, replies, strict=True):
        verdict = decision_support(reply.content, 0, DecisionReading(), Usage()) if reply.is_answer else None
        if verdict is not None and verdict.probability is not None:
            return profile.model_copy(update={"route": route})
        found.append(f"/v1/{route}: {reply.message if verdict is None else verdict.reply}")
    raise UnusableError(
        f"no endpoint of the server gives the probability of yes to a question about a text ({'; '.join(found)}). "
        "Serve the model with a server that has one (`assay docs judge-servers` names them), or ask it as a chat "
        f"model, without the profile {profile.name}"
    )


def _ask_canaries(
    profile: Profile, served: ServedModel, engine: ServedEngine, *, check_canaries: bool
) -> tuple[list[str], float]:
    """Ask each replica the canaries, which also identify its model.

    Args:
        check_canaries: True if a replica must answer all of them.

    Returns:
        What is wrong with their answers, and the largest difference of the answers to a repeated request.

    Raises:
        UnusableError: A replica gave an error, or nothing that can be read, instead of an answer.
    """
    room = engine.window - engine.overhead - profile.chunks.reserve
    if room < SMALLEST_ROOM:
        raise UnusableError(
            f"the window of {engine.window} tokens leaves {room} tokens for a premise, beside {engine.overhead} of "
            f"the form and {profile.chunks.reserve} of a claim. Serve the model with a larger window"
        )
    questions = canary_questions(
        profile, profile.chunks.longest_part(room), engine.count, counts_bytes=not engine.has_tokenizer
    )
    ordered = ordered_pairs(profile) if isinstance(profile.form, DecisionForm) else []
    asked = engine.prepare([*([question.pair] for question in questions), *ordered], optional=True)
    served.connection.set_simplest(asked[0].request)

    def read(replies: Sequence[Reply]) -> list[Verdict]:
        return [engine.read(one, reply)[0] for one, reply in zip(asked, replies, strict=True)][: len(questions)]

    def read_model(replies: Sequence[Reply]) -> Traits:
        given = zip(read(replies), replies, strict=False)
        numbers = (
            NOT_READ if engine.find_unknown(reply) is not None else _round(verdict.probability)
            for verdict, reply in given
        )
        return tuple(numbers), profile.name

    replies = served.observe([one.request for one in asked], read_model)
    for url, given in replies.items() if check_canaries else ():
        unknown = [problem for reply in given if (problem := engine.find_unknown(reply)) is not None]
        if unknown:
            raise UnusableError(
                f"{url} left {len(unknown)} of {len(given)} questions that check it unanswered ({unknown[0]}). "
                "Check the server and run again, or set canaries = false to use it nevertheless"
            )
    problems = [(url, find_verifier_problem(profile, questions, read(given))) for url, given in replies.items()]
    differences = [0.0]
    for url, given in replies.items() if ordered else ():
        several = zip(asked[len(questions) :], given[len(questions) :], strict=True)
        problem, difference = find_order_problem([engine.read(one, reply) for one, reply in several])
        problems.append((url, problem))
        differences.append(difference)
    return [f"{url}: {problem}" for url, problem in problems if problem is not None], max(differences)


def _round(probability: float | None) -> tuple[float, ...]:
    """Return the probabilities of support and of its contrary; of neither for a reply that gives none."""
    return (0.0, 0.0) if probability is None else (round(probability, 4), round(1 - probability, 4))
