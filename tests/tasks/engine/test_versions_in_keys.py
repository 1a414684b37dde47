"""Every constant that is in a key changes the key: whoever raises one gets no result of before."""

import ast
import importlib
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest
from sqlalchemy import select

from metric_core.question_kinds import QuestionKind
from metric_core.schemas import SCHEMAS
from metric_core.stages import Stage
from tasks.cache import codec, served_models
from tasks.cache.answer_cache import AnswerCache
from tasks.cache.cache_tables import ANSWERS
from tasks.cache.cached_models import CachedEmbedder, CachedRecognizer
from tasks.cache.codec import Codec
from tasks.engine import stage_step
from tasks.engine.registry import STAGES
from tasks.engine.stage_step import make_recipe
from tasks.models.embedders.protocol import EmbedderIdentity
from tasks.models.judges.builtin.builtin_judge import BuiltinJudge
from tasks.models.judges.builtin.sentence_claims import SentenceClaims
from tasks.models.judges.openai.openai_judge import OpenAIJudge
from tasks.models.judges.panel import CascadeRule, PanelJudge
from tasks.models.judges.protocol import Judge
from tasks.models.judges.verifiers.verifier_judge import VerifierJudge, VerifierModel
from tasks.models.recognizers.protocol import RecognizerIdentity
from tasks.opening.run_models import RunModels
from tasks.options.judge_server_options import ServerJudgeOptions
from tasks.options.load_profile import load_profile
from tests.structure.house import ROOT
from tests.tasks.models.judges.openai.fake_server import FakeServer
from tests.tasks.models.judges.test_routed_judge import Named
from tests.tasks.models.judges.verifiers.conftest import SPLITTER
from tests.tasks.stages.stage_settings import settings_of

FORMATS = {
    "tasks.history.history_tables.FORMAT",
    "tasks.cache.cache_tables.FORMAT",
    "tasks.calibration.calibration_files.FORMAT",
    "tasks.record.judge_quality.CERTIFICATE_FORMAT",
    "tasks.record.run_record.FORMAT",
    "tasks.record.outcome.FORMAT",
}
"""Versions of files and tables, which are in no key."""

OPENAI = "tasks.models.judges.openai"


@dataclass(frozen=True)
class Keys:
    """The keys of everything that models answer."""

    server: OpenAIJudge
    folder: Path

    def of_server(self, kind: QuestionKind = QuestionKind.VERDICT) -> str:
        self.server._fingerprints.clear()
        return self.server.fingerprint(kind)

    def of_questions(self) -> str:
        return self.of_server(QuestionKind.QUESTIONS)

    def of_probes(self) -> Any:
        return self.server._describe_probes()

    def of_panel(self) -> list[str]:
        members: list[Judge] = [Named("a"), Named("b")]
        panels = PanelJudge(members), PanelJudge(members, CascadeRule(members[1]))
        assert len({panel.fingerprint(QuestionKind.VERDICT) for panel in panels}) == 2
        return [panel.fingerprint(QuestionKind.VERDICT) for panel in panels]

    def of_builtin(self) -> str:
        return BuiltinJudge(cast("Any", Model()), cast("Any", Model())).fingerprint(QuestionKind.VERDICT)

    def of_sentences(self) -> str:
        return SentenceClaims(lambda: cast("Any", Model())).fingerprint(QuestionKind.CLAIMS)

    def of_verifier(self) -> str:
        model = VerifierModel("server", "m", "1", "vLLM", "chat", tokenizer=True)
        engine: Any = SimpleNamespace(window=512)
        return VerifierJudge(load_profile("minicheck-7b"), engine, model, SPLITTER).fingerprint(QuestionKind.VERDICT)

    def of_cached_models(self) -> list[bytes]:
        """Return the keys of a vector and of entities, in this order."""
        (self.folder / "answers.db").unlink(missing_ok=True)
        cache = AnswerCache(f"sqlite:///{self.folder / 'answers.db'}")
        CachedEmbedder(cast("Any", Model()), cache).embed(["text"])
        CachedRecognizer(cast("Any", Recognizer()), cache).entities(["text"])
        rows = cache.database.read(lambda connection: connection.execute(select(ANSWERS.c.step, ANSWERS.c.key)).all())
        found = {row.step: row.key for row in rows}
        return [found["vector"], found["entities"]]


class Model:
    """An embedder and a pipeline in one."""

    identity: Any = EmbedderIdentity("test", "m", "1", 2)

    def embed(self, texts: list[str]) -> Any:
        return np.ones((len(texts), 2), np.float32)


class Recognizer:
    """A recognizer that finds nothing."""

    identity = RecognizerIdentity("test", "m", "1")

    def entities(self, texts: list[str]) -> list[list[Any]]:
        return [[] for _ in texts]


CONSTANTS: dict[str, Callable[[Keys], object]] = {
    "metric_core.prompts.prompt_set.RENDERING_VERSION": Keys.of_server,
    f"{OPENAI}.openai_judge.VERSION": Keys.of_server,
    f"{OPENAI}.label_probabilities.VERSION": Keys.of_server,
    f"{OPENAI}.probe.PROBES": Keys.of_probes,
    f"{OPENAI}.request_mode.TOKENS_PER_BYTE": Keys.of_questions,
    f"{OPENAI}.request_mode.QUESTIONS_TEMPERATURE": Keys.of_questions,
    f"{OPENAI}.request_mode.VOTES_TEMPERATURE": Keys.of_server,
    "tasks.models.judges.panel.VERSION": Keys.of_panel,
    "tasks.models.judges.builtin.builtin_judge.VERSION": Keys.of_builtin,
    "tasks.models.judges.builtin.linear_models.FEATURES_VERSION": Keys.of_builtin,
    "tasks.models.judges.builtin.sentence_claims.VERSION": Keys.of_sentences,
    "tasks.models.judges.verifiers.verifier_judge.VERSION": Keys.of_verifier,
    "tasks.cache.cached_models.VERSION": lambda keys: keys.of_cached_models()[1],
    "tasks.cache.cached_models.EMBEDDER_VERSION": lambda keys: keys.of_cached_models()[0],
}


@pytest.fixture(scope="module")
def server() -> Iterator[OpenAIJudge]:
    with ExitStack() as stack:
        running = stack.enter_context(FakeServer())
        judge = OpenAIJudge(ServerJudgeOptions(urls=(running.url,)))
        yield judge
        judge.close()


@pytest.mark.parametrize("constant", CONSTANTS)
def test_a_constant_that_is_raised_changes_its_key(
    server: OpenAIJudge, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, constant: str
) -> None:
    keys, key = Keys(server, tmp_path), CONSTANTS[constant]
    module, _, name = constant.rpartition(".")
    where = importlib.import_module(module)
    before = key(keys)
    assert key(keys) == before
    if constant == f"{OPENAI}.probe.PROBES":
        where = importlib.import_module(f"{OPENAI}.openai_judge")
    monkeypatch.setattr(where, name, getattr(where, name) + 1)
    after = key(keys)
    if isinstance(before, list) and isinstance(after, list):
        assert all(one != other for one, other in zip(before, after, strict=True))
    assert after != before


def test_every_version_is_among_them() -> None:
    found = set()
    for package in ("metric_core", "tasks"):
        for path in sorted((ROOT / package).rglob("*.py")):
            module = ".".join(path.relative_to(ROOT).with_suffix("").parts)
            for node in ast.parse(path.read_text(encoding="utf-8")).body:
                targets = node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", None)]
                names = [target.id for target in targets if isinstance(target, ast.Name)]
                is_number = isinstance(node, ast.Assign | ast.AnnAssign) and isinstance(node.value, ast.Constant)
                is_whole = is_number and type(cast("Any", node).value.value) is int
                found |= {f"{module}.{name}" for name in names if is_whole and name.endswith(("VERSION", "FORMAT"))}
    assert found - FORMATS <= set(CONSTANTS)
    assert found >= FORMATS


@pytest.mark.parametrize("stage", STAGES)
@pytest.mark.parametrize("version", ["stage", "schema"])
def test_the_versions_of_a_stage_and_of_its_schema_are_in_its_recipe(
    monkeypatch: pytest.MonkeyPatch, stage: Stage, version: str
) -> None:
    monkeypatch.setattr(stage_step, "fingerprint_stage", lambda *_arguments: "the same")
    settings = settings_of(stage)

    def recipe() -> str | None:
        return make_recipe(stage, settings, RunModels(), (Stage.SAMPLES,))

    before = recipe()
    assert recipe() == before is not None
    if version == "stage":
        monkeypatch.setitem(STAGES, stage, replace(STAGES[stage], version=STAGES[stage].version + 1))
    else:
        monkeypatch.setitem(SCHEMAS, stage, replace(SCHEMAS[stage], version=SCHEMAS[stage].version + 1))
    assert recipe() not in {before, None}


@pytest.mark.parametrize(
    "kept",
    [codec.CHOICES, codec.GENERATED, codec.ENTITIES, codec.vectors(2), served_models._MODELS],
    ids=lambda each: each.step,
)
def test_the_version_of_an_encoding_is_in_the_keys_of_its_values(kept: Codec[Any]) -> None:
    assert replace(kept, version=kept.version + 1).key("a", "b") != kept.key("a", "b")
    assert replace(kept, step="other").key("a", "b") != kept.key("a", "b")
