"""Verifiers behind a real vLLM: probabilities are those of transformers, nothing is cut, and whole runs use them.

The models are small and have random weights: no canary can be answered, every probability can be computed.
"""

import json
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from deployments.local_server import use_server
from flows.config.run_config import RunConfig
from flows.dry_run.dry_run import make_dry_run
from flows.evaluate import run_evaluation
from flows.planning.planner import draft_plan
from metric_core.errors import JudgeError
from metric_core.prompts.judge_questions import ask_verdict
from metric_core.records import AnswerStatus, Sample
from tasks.models.clients.request_trace import trace_requests
from tasks.models.judges.openai.context_window import TOO_LONG
from tasks.models.judges.openai.probe import TOKENIZE
from tasks.models.judges.verifiers.engine import ClaimPair
from tasks.models.judges.verifiers.open_served import open_served_verifier
from tasks.models.judges.verifiers.probabilities import Verdict
from tasks.models.judges.verifiers.verifier_judge import VerifierJudge
from tasks.options.load_profile import load_profile
from tasks.options.profile import DecisionReading, Profile
from tests.sharing import ensure_local_server
from tests.tasks.models.judges.verifiers.conftest import SPLITTER
from tests.tasks.models.judges.verifiers.random_models import (
    CHAT,
    CLASSIFIER,
    DECISION,
    SCORE,
    own_chat_probability,
    own_decision,
    own_probability,
)
from tests.vllm.small_servers import SmallServer, serve_small_models
from tests.vllm.with_transformers import extend_path, find_obstacle

if (obstacle := find_obstacle()) is not None:
    pytest.skip(obstacle, allow_module_level=True)

CLOSE = 1e-4
SHORT = (
    ("It rains here.", "It rains."),
    ("The ferry leaves at nine in May.", "It snows."),
    ("Bread costs three euros. The shop is closed on Mondays.", "Bread costs seven euros. The shop is closed."),
)
"""Premises and claims."""

SCORED = Profile.model_validate(
    {
        "name": "scored",
        "version": 1,
        "model": "score",
        "source": "these tests",
        "license": "none",
        "languages": ["en"],
        "route": "score",
        "form": {"kind": "pair", "first": "{premise}", "second": "{claim}"},
        "reading": {"kind": "score"},
        "chunks": {"window": 512, "parts": {"most": 200}, "reserve": 80},
        "serving": {"extra_args": ["--runner", "pooling"]},
    }
)
GUARDIAN_REPLY = {"structured_outputs": {"regex": r"<think>\n</think>\n<score> (yes|no) </score>"}}
"""The form of Granite Guardian's replies, which a model without training has to be held to."""


def guardian(name: str) -> Profile:
    """Return a packaged profile of Granite Guardian whose replies have the right form."""
    profile = load_profile(name)
    return profile.model_copy(update={"form": profile.form.model_copy(update={"extra_body": GUARDIAN_REPLY})})


def decider() -> Profile:
    """Return the packaged profile of a decision model for a model without training, which may prefer other words."""
    profile = load_profile("pplx-decider-1.1")
    return profile.model_copy(update={"reading": DecisionReading()})


PROFILES: Mapping[str, tuple[str, Profile]] = {
    "minicheck-7b": (CHAT, load_profile("minicheck-7b")),
    "granite-guardian-3.3": (CHAT, guardian("granite-guardian-3.3")),
    "granite-guardian-4.1": (CHAT, guardian("granite-guardian-4.1")),
    "pplx-decider-1.1": (DECISION, decider()),
    "classifier": ("classifier", load_profile(CLASSIFIER)),
    "scored": (SCORE, SCORED),
    "lettucedetect": ("lettucedetect", load_profile("lettucedetect")),
}
"""Name -> small model, and the profile that it is asked by."""


@pytest.fixture(scope="module")
def servers(vllm_home: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, SmallServer]]:
    """Yield the servers of the small models; `vllm_home` keeps other test runs from filling the memory too."""
    del vllm_home
    extend_path()
    with serve_small_models(tmp_path_factory.mktemp("small"), dict(PROFILES.values())) as running:
        yield running


@pytest.fixture(scope="module")
def judge_of(servers: dict[str, SmallServer]) -> Iterator[Callable[[str], VerifierJudge]]:
    """Return a function that opens the verifier of a profile, each once, whatever it answers to the canaries."""
    opened: dict[str, VerifierJudge] = {}

    def open_one(name: str) -> VerifierJudge:
        if name not in opened:
            model, profile = PROFILES[name]
            options = servers[model].options.model_copy(update={"context_window": 2048})
            opened[name] = open_served_verifier(profile, options, SPLITTER, check_canaries=False)
        return opened[name]

    yield open_one
    for judge in opened.values():
        judge.close()


def own(name: str, servers: Mapping[str, SmallServer], premise: str, claim: str) -> float:
    """Return the probability of support as transformers has it."""
    model, profile = PROFILES[name]
    server = servers[model]
    if model == DECISION:
        return own_decision(profile, server.model, server.tokenizer, premise, claim)
    if model == CHAT:
        return own_chat_probability(profile, server.model, server.tokenizer, premise, claim)
    return own_probability(model, server.model, server.tokenizer, premise, claim)


def sentences_of(name: str, claim: str) -> list[str]:
    """Return the parts of a claim that the profile asks about."""
    return SPLITTER.split([claim])[0] if PROFILES[name][1].chunks.claim == "sentences" else [claim]


@pytest.mark.parametrize("name", PROFILES)
def test_probabilities_are_those_of_transformers(
    name: str, judge_of: Callable[[str], VerifierJudge], servers: dict[str, SmallServer]
) -> None:
    answers = judge_of(name).choose([ask_verdict(claim, premise) for premise, claim in SHORT])

    wanted = [min(own(name, servers, premise, part) for part in sentences_of(name, claim)) for premise, claim in SHORT]
    for answer, probability in zip(answers, wanted, strict=True):
        assert answer.status is AnswerStatus.ANSWERED, answer.reason
        assert answer.probabilities is not None
        assert answer.probabilities["yes"] == pytest.approx(probability, abs=CLOSE)
    assert max(wanted) - min(wanted) > 10 * CLOSE
    # Another premise has another probability: it reaches the model.
    claim = SHORT[0][1]
    assert abs(own(name, servers, SHORT[0][0], claim) - own(name, servers, SHORT[1][0], claim)) > 10 * CLOSE


@pytest.mark.parametrize("name", ["classifier", "minicheck-7b"])
def test_a_long_premise_is_asked_about_in_parts_and_nothing_is_cut(
    name: str, judge_of: Callable[[str], VerifierJudge], servers: dict[str, SmallServer]
) -> None:
    judge = judge_of(name)
    sentences = [f"In hall {number} they repair bikes, and in hall {number + 1} they paint." for number in range(60)]
    claim = "They repair boats."

    with trace_requests() as trace:
        (answer,) = judge.choose([ask_verdict(claim, " ".join(sentences))])

    asked = [each for each in trace if each.path != TOKENIZE]
    parts = [premise for each in asked for premise in premises_in(each.body, claim)]
    assert {each.status for each in asked} == {200}
    assert len(parts) > 2
    assert all(any(sentence in part for part in parts) for sentence in sentences)
    assert answer.probabilities is not None
    wanted = max(own(name, servers, part, claim) for part in parts)
    assert answer.probabilities["yes"] == pytest.approx(wanted, abs=CLOSE)


def premises_in(body: Mapping[str, Any], claim: str) -> list[str]:
    """Return the premises that a request of MiniCheck asks about."""
    if "input" in body:
        return [text.removesuffix(f"</s>{claim}") for text in body["input"]]
    return [body["messages"][1]["content"].removeprefix("Document: ").removesuffix(f"\nClaim: {claim}")]


@pytest.mark.parametrize("name", PROFILES)
def test_a_prompt_that_is_too_long_is_refused(name: str, judge_of: Callable[[str], VerifierJudge]) -> None:
    verdicts: dict[int, Verdict] = {}

    judge_of(name)._engine.ask([ClaimPair("It rains in Skagerhavn. " * 400, "It rains.")], verdicts.__setitem__)

    assert verdicts[0].probability is None
    assert verdicts[0].problem == TOO_LONG


@pytest.mark.parametrize("name", PROFILES)
def test_random_weights_fail_the_canaries(name: str, servers: dict[str, SmallServer]) -> None:
    model, profile = PROFILES[name]

    with pytest.raises(JudgeError, match=rf"does not answer as its profile {profile.name} says\. .*\d of \d questions"):
        open_served_verifier(profile, servers[model].options, SPLITTER)


# Whole runs.

ROWS = [
    {
        "id": f"r{number}",
        "user_input": f"Who repairs bike {number}?",
        "response": f"Hall {number} repairs bikes on Mondays. It is closed in May.",
        "retrieved_contexts": [f"Hall {number} repairs bikes. It opens at nine.", "The canteen serves soup."],
        "reference": f"Hall {number} repairs bikes.",
    }
    for number in range(3)
]
NEED_NO_WRITING = ("faithfulness", "context_recall", "factual_correctness")
NEED_WRITING = ("answer_relevancy", "nv_accuracy")
ROUTED = ("faithfulness", "nv_accuracy")


class Bench:
    """Runs that share stores."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.source = folder / "rows.jsonl"
        self.source.write_text("\n".join(map(json.dumps, ROWS)), encoding="utf-8")

    def config(self, judge: Mapping[str, Any], metrics: tuple[str, ...]) -> RunConfig:
        values = {"source": str(self.source), "metrics": metrics, "judge": judge, "out": str(self.folder / "run")}
        stores = {"tables": str(self.folder / "tables"), "cache": str(self.folder / "answers.db")}
        return RunConfig.model_validate(values | stores)

    def plan(self, judge: Mapping[str, Any], metrics: tuple[str, ...]) -> dict[str, int]:
        """Return the number of requests that `assay plan` predicts for each judge."""
        config = self.config(judge, metrics)
        return {name: tally.requests for name, tally in make_dry_run(draft_plan(config)).by_judge.items()}

    def run(self, judge: Mapping[str, Any], metrics: tuple[str, ...]) -> "Finished":
        """Evaluate the rows."""
        return Finished(Path(run_evaluation(self.config(judge, metrics)).folder))


class Finished:
    """A finished run.

    Args:
        folder: Path of the run folder.
    """

    def __init__(self, folder: Path) -> None:
        self.manifest: dict[str, Any] = json.loads((folder / "run.json").read_text(encoding="utf-8"))
        self.scores = pq.read_table(folder / "scores.parquet").to_pylist()
        self.tables = {path.stem: pq.read_table(path).to_pylist() for path in (folder / "stages").glob("*.parquet")}
        usages = {judge["name"]: judge["usage"] for judge in self.manifest["judges"]}
        self.requests = {name: usage["requests"] for name, usage in usages.items()}
        # How many questions share a request depends on when they come; how many are asked does not.
        self.asked = {name: usage["questions"] - usage["stored"] for name, usage in usages.items()}

    def statuses(self, metric: str) -> Counter[str]:
        return Counter(row["status"] for row in self.scores if row["metric"] == metric)

    def claims(self) -> dict[tuple[str, str], str]:
        return {(row["row_id"], row["claim_id"]): row["text"] for row in self.tables["claims"]}


@pytest.fixture(scope="module")
def bench(server_home: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bench]:
    """Yield empty stores, with a running Prefect server."""
    folder = tmp_path_factory.mktemp("verifiers")
    with pytest.MonkeyPatch.context() as patch:
        url = ensure_local_server(server_home)
        patch.setenv("PREFECT_LOGGING_LEVEL", "CRITICAL")
        with use_server(url):
            yield Bench(folder)


def served_by(server: SmallServer, profile: str) -> dict[str, Any]:
    """Return the settings of a verifier whose canaries are overridden."""
    url = {"urls": [server.url], "timeout": 300}
    return {"backend": "server", "profile": profile, "canaries": False, "server": url}


@pytest.mark.prefect
@pytest.mark.models
def test_a_run_ends_when_the_canaries_fail(bench: Bench, servers: dict[str, SmallServer]) -> None:
    judge = served_by(servers[CHAT], "minicheck-7b") | {"canaries": True}

    with pytest.raises(JudgeError, match="does not answer as its profile minicheck-7b says"):
        bench.run(judge, NEED_NO_WRITING)


@pytest.mark.prefect
@pytest.mark.models
def test_a_verifier_alone_computes_what_needs_no_writing(bench: Bench, servers: dict[str, SmallServer]) -> None:
    judge = served_by(servers["classifier"], CLASSIFIER)
    metrics = (*NEED_NO_WRITING, *NEED_WRITING)
    planned = bench.plan(judge, metrics)

    run = bench.run(judge, metrics)

    assert run.requests["classifier"] == planned["classifier"] > 0
    for metric in NEED_NO_WRITING:
        assert run.statuses(metric) == {"scored": len(ROWS)}, metric
    for metric in NEED_WRITING:
        assert run.statuses(metric) == {"undefined": len(ROWS)}, metric
    assert any("canaries = false" in warning for warning in run.manifest["warnings"])
    claims, seen = run.claims(), 0
    for row in run.tables["verdicts"]:
        sample = next(each for each in ROWS if each["id"] == row["row_id"])
        if row["premise"] == "response":
            claim = claims[row["row_id"], row["claim_id"]]
            asked = Sample(user_input=str(sample["user_input"]))
            wanted = own("classifier", servers, asked.with_question(str(sample["response"])), claim)
            assert row["probability"] == pytest.approx(wanted, abs=CLOSE)
            seen += 1
    assert seen


@pytest.mark.prefect
@pytest.mark.models
def test_a_verifier_and_a_writer_are_changed_one_by_one(bench: Bench, servers: dict[str, SmallServer]) -> None:
    options = {"urls": [servers[CHAT].url], "temperature": 1.0, "seed": 4, "max_output_tokens": 512, "timeout": 300}
    writer: dict[str, Any] = {"backend": "server", "server": options}
    one = served_by(servers["classifier"], CLASSIFIER)
    other = served_by(servers["lettucedetect"], "lettucedetect")
    first = bench.run(writer | {"verdicts": one}, ROUTED)
    roles = {role["name"]: role["groups"] for role in first.manifest["judges"]}
    assert roles.keys() == {CHAT, "classifier"}
    assert roles["classifier"] == ["verdicts"]
    assert min(first.requests.values()) > 0

    planned = bench.plan(writer | {"verdicts": other}, ROUTED)
    second = bench.run(writer | {"verdicts": other}, ROUTED)
    assert second.requests == {CHAT: 0, "lettucedetect": planned["lettucedetect"]}
    assert planned.get(CHAT, 0) == 0
    assert second.requests["lettucedetect"] > 0

    again = {**writer, "server": {**options, "revision": "2"}, "verdicts": other}
    third = bench.run(again, ROUTED)
    assert third.asked[CHAT] == first.asked[CHAT] > 0
    assert third.requests[CHAT] > 0
    assert third.manifest["stages"]["verdicts"]["stored"] == len(asked_about(third) & asked_about(second)) > 0


def asked_about(run: Finished) -> set[tuple[str, str]]:
    """Return the claims that verdicts are about, with their rows, which differ in their passages."""
    claims = run.claims()
    return {(row["row_id"], claims[row["row_id"], row["claim_id"]]) for row in run.tables["verdicts"]}
