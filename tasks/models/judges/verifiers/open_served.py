"""Open a verifier behind a server: find its model, ask the canaries, and compare it with the models seen before."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from metric_core.errors import ConfigError, JudgeError
from tasks.model_clients.connection import Connection
from tasks.model_clients.jobs import UnusableError
from tasks.model_clients.model_names import list_models
from tasks.model_clients.replica import Reply
from tasks.model_clients.reply_fields import get_model
from tasks.model_clients.served_model import Recognize, ServedModel, describe_card, find_disagreement, recognize_alone
from tasks.models.judges.protocol import JudgeIdentity
from tasks.models.judges.verifiers.canaries import canary_questions, find_problem
from tasks.models.judges.verifiers.question_plan import SMALLEST_ROOM, SentenceSplitter
from tasks.models.judges.verifiers.readings import Verdict
from tasks.models.judges.verifiers.served_engine import Asked, ServedEngine
from tasks.models.judges.verifiers.verifier_judge import VerifierDescription, VerifierFeatures, VerifierJudge
from tasks.options.judge_server_options import ServerJudgeOptions
from tasks.options.profile import Profile
from tasks.runtime.wording import NO_REVISION

PASSED, OVERRIDDEN = "passed", "overridden"


def open_served_verifier(
    profile: Profile,
    options: ServerJudgeOptions,
    splitter: SentenceSplitter,
    *,
    check_canaries: bool = True,
    recognize: Recognize = recognize_alone,
) -> VerifierJudge:
    """Return the judge that asks a verifier behind servers.

    Args:
        options: URLs of the servers, and how requests are made. Prompts and sampling have no effect.
        check_canaries: False only warns about a verifier that answers questions wrongly whose answers are beyond doubt.
        recognize: Compares the model with those that gave cached answers.

    Raises:
        ConfigError: No server can serve this profile, or the variable of the key is not set.
        JudgeError: No server can be used, or the model behind it is not that of the profile.
    """
    if profile.route is None:
        raise ConfigError(
            f"the profile {profile.name} is for a model that no server serves; set judge.backend = 'verifier', which "
            "runs it in this process"
        )
    connection = Connection(options)
    try:
        return _Opening(profile, options, connection).open(splitter, recognize, check_canaries=check_canaries)
    except UnusableError as error:
        connection.close()
        raise JudgeError(f"the judge cannot be used: {error}") from error
    except BaseException:
        connection.close()
        raise


class _Opening:
    def __init__(self, profile: Profile, options: ServerJudgeOptions, connection: Connection) -> None:
        self._profile = profile
        self._options = options
        self._connection = connection
        listed = connection.get_all("models")
        cards = list_models(listed, options.model)
        self._cards = dict(zip(listed, cards, strict=True))
        self._card = cards[0]
        told = [length for card in cards if (length := describe_card(card)[1]) is not None and length > 0]
        window = min([profile.chunks.window, *told, *([options.context_window] if options.context_window else [])])
        self._engine = ServedEngine(profile, connection, options, str(cards[0]["id"]), window)

    def open(self, splitter: SentenceSplitter, recognize: Recognize, *, check_canaries: bool) -> VerifierJudge:
        profile, engine = self._profile, self._engine
        room = engine.window - engine.overhead - profile.chunks.reserve
        if room < SMALLEST_ROOM:
            raise UnusableError(
                f"the window of {engine.window} tokens leaves {room} tokens for a premise, beside {engine.overhead} of "
                f"the form and {profile.chunks.reserve} of a claim. Serve the model with a larger window"
            )
        room = room if profile.chunks.premise is None else min(room, profile.chunks.premise)
        questions = canary_questions(profile, room, engine.count)
        asked = engine.prepare([[question.pair] for question in questions], optional=True)
        self._connection.set_simplest(asked[0].request)
        replies = self._ask(asked)
        models, problems = [], []
        for url, given in replies.items():
            verdicts = self._read(asked, given)
            if (problem := find_problem(profile, questions, verdicts)) is not None:
                problems.append(f"{url}: {problem}")
            models.append(self._describe(url, verdicts))
        if problems and check_canaries:
            raise JudgeError(f"the verifier does not answer as its profile {profile.name} says. {problems[0]}")
        if (disagreement := find_disagreement(models)) is not None:
            raise UnusableError(f"{disagreement}. All replicas must serve the same model")
        served = replace(models[0], urls=self._options.urls)
        recognized = recognize(served)
        warnings = [recognized.warning] if recognized.warning is not None else []
        warnings += [
            f"canaries = false: the verdicts of a verifier are used that fails them. {each}" for each in problems
        ]
        software = "vLLM" if self._card.get("owned_by") == "vllm" else "a model server"
        features = VerifierFeatures(
            profile.name,
            profile.version,
            profile.digest(),
            profile.license,
            str(profile.route),
            engine.model,
            software,
            engine.window,
            engine.has_tokenizer,
            f"{OVERRIDDEN}: {problems[0]}" if problems else PASSED,
        )
        identity = JudgeIdentity(
            "server",
            engine.model,
            self._options.revision or NO_REVISION,
            describe(profile, f"{engine.model} served by {software} at {' and '.join(self._options.urls)}"),
            language_model=False,
            languages=profile.languages,
            served=recognized.token,
        )
        description = VerifierDescription(identity, features, tuple(warnings), recognized)
        return VerifierJudge(profile, engine, description, splitter)

    def _ask(self, asked: Sequence[Asked]) -> Mapping[str, Sequence[Reply]]:
        first: list[ServedModel] = []

        def is_same(replies: Sequence[Reply]) -> bool:
            if not first:
                return True
            model = self._describe("", self._read(asked, replies))
            return model.find_difference(first[0]) is None

        replies = self._connection.ask_each([one.request for one in asked], is_same)
        self._engine.names |= {name for each in replies.values() for r in each if (name := get_model(r)) is not None}
        first.append(self._describe("", self._read(asked, next(iter(replies.values())))))
        return replies

    def _read(self, asked: Sequence[Asked], replies: Sequence[Reply]) -> list[Verdict]:
        return [self._engine.read(one, reply)[0] for one, reply in zip(asked, replies, strict=True)]

    def _describe(self, url: str, verdicts: Sequence[Verdict]) -> ServedModel:
        card: Mapping[str, Any] = self._cards.get(url, self._card)
        told, length = describe_card(card)
        numbers = tuple(
            () if verdict.probability is None else (round(verdict.probability, 4), round(1 - verdict.probability, 4))
            for verdict in verdicts
        )
        return ServedModel("judge", self._engine.model, told, length, numbers, self._profile.name, (url,))


def describe(profile: Profile, where: str) -> str:
    """Return the sentence of reports about a verifier."""
    note = f" {profile.note}" if profile.note else ""
    accuracy = f" Published: {profile.accuracy}." if profile.accuracy else ""
    return (
        f"{where}, asked by the profile {profile.name} version {profile.version} ({profile.license}).{note}{accuracy}"
    )
