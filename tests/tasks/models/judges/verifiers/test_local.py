"""Verifiers in this process: the probabilities are those of the library that runs them, and nothing is cut."""

import json
import math
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
import pytest
from tokenizers import Tokenizer

from metric_core.errors import ConfigError, JudgeError, MissingDependencyError
from metric_core.prompts.judge_questions import ask_verdict
from tasks.models.clients.observed_model import NoMemory
from tasks.models.embedders.minilm import MiniLm
from tasks.models.judges.verifiers import local_engine
from tasks.models.judges.verifiers.local_engine import LocalEngine, open_local_verifier
from tasks.models.judges.verifiers.onnx_model import OnnxModel
from tasks.models.judges.verifiers.transformers_model import TransformersModel
from tasks.models.judges.verifiers.verifier_judge import VerifierJudge
from tasks.opening.backends import JudgeHelpers, open_judge
from tasks.opening.local_models import load_pipeline
from tasks.options.judge_options import JudgeSettings
from tasks.options.language_options import LanguageSettings
from tasks.options.load_profile import load_profile
from tasks.options.profile import Profile
from tests.tasks.models.judges.verifiers.conftest import SPLITTER
from tests.tasks.models.judges.verifiers.random_models import CLASSIFIER, own_probability, save_random

ONNX = Path(__file__).parent / "onnx_sum"
"""A model that adds up two numbers per word: an ONNX graph of five nodes, and a tokenizer of 21 words."""

HELPERS = JudgeHelpers(MiniLm, partial(load_pipeline, LanguageSettings()), NoMemory())

QUESTIONS = [
    ask_verdict("It rains.", "It rains here."),
    ask_verdict("Bread costs seven euros, and so does the cake of the baker.", "Bread costs three euros. " * 9),
    ask_verdict("It snows. The ferry leaves.", "The ferry leaves at nine."),
]


def profile_of(name: str, **changes: Any) -> Profile:
    """Return a packaged profile with changes, and with small parts."""
    content = load_profile(CLASSIFIER if name == "classifier" else name).model_dump(mode="json") | changes
    content["chunks"] |= {"window": 256, "reserve": 64}
    return Profile.model_validate(content)


def open_onnx(profile: Profile) -> VerifierJudge:
    return open_local_verifier(profile, str(ONNX), OnnxModel(ONNX), SPLITTER, check_canaries=False)


def test_onnx_probabilities_are_those_of_the_model() -> None:
    profile = profile_of("factcg")
    judge = open_onnx(profile)

    answers = judge.choose(QUESTIONS)

    tokenizer, session = (
        Tokenizer.from_file(str(ONNX / "tokenizer.json")),
        onnxruntime.InferenceSession(str(ONNX / "model.onnx")),
    )
    for question, answer in zip(QUESTIONS, answers, strict=True):
        text = profile.form.text.format(  # type: ignore[union-attr]
            premise="\n".join(SPLITTER.split([question.texts["context"]])[0]), claim=question.texts["claim"]
        )
        ids = np.array([tokenizer.encode(text).ids])
        (logits,) = session.run(None, {"input_ids": ids, "attention_mask": np.ones_like(ids)})
        wanted = 1 / (1 + math.exp(float(logits[0, 0]) - float(logits[0, 1])))
        assert answer.probabilities is not None
        assert answer.probabilities["yes"] == pytest.approx(wanted, abs=1e-6)
    assert judge.identity.backend == "verifier"
    assert judge.identity.revision.startswith("sha256:")


def test_a_model_without_training_fails_the_canaries() -> None:
    with pytest.raises(JudgeError, match="does not answer as its profile factcg says"):
        open_local_verifier(profile_of("factcg"), str(ONNX), OnnxModel(ONNX), SPLITTER)


def test_overridden_canaries_are_told() -> None:
    judge = open_onnx(profile_of("factcg"))

    assert judge.features.canaries.startswith("overridden: ")
    assert "canaries = false" in judge.warnings[0]


class CountingModel:
    """A model that notes the batches it gets, and finds one word."""

    revision, software, window = "1", "none", None

    def __init__(self) -> None:
        self.batches: list[list[int]] = []

    def count(self, texts: Sequence[str]) -> list[int]:
        return [len(text.split()) for text in texts]

    def encode(self, first: str, second: str | None) -> Any:
        from tasks.models.judges.verifiers.local_model import Encoded

        return Encoded(tuple(int(word.startswith("needle")) for word in f"{first} {second or ''}".split()), ())

    def scores(self, batch: Sequence[Any], output: str, decoder_start: int) -> list[Any]:
        del output, decoder_start
        self.batches.append([len(one.ids) for one in batch])
        return [np.array([0.0, 9.0 if sum(one.ids) else -9.0]) for one in batch]


@pytest.mark.parametrize("place", [0, 17_001, 33_000])
def test_a_fact_anywhere_in_a_long_premise_is_found(place: int) -> None:
    model = CountingModel()
    judge = open_local_verifier(profile_of("factcg"), "m", model, SPLITTER, check_canaries=False)
    words = [f"word{number % 7}" for number in range(33_000)]
    words.insert(place, "needle")

    found, missing = judge.choose([ask_verdict("needle", " ".join(words)), ask_verdict("needles", "word1")])

    assert (found.label, missing.label) == ("yes", "no")


def test_texts_of_about_equal_length_share_a_batch(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(local_engine, "MAX_BATCH_TOKENS", 512)
    model = CountingModel()
    profile = profile_of("factcg")
    engine = LocalEngine(profile, model)
    judge = open_local_verifier(profile, "m", model, SPLITTER, check_canaries=False)
    model.batches.clear()

    judge.choose([ask_verdict(f"claim {number}", "word " * (number % 50 + 1)) for number in range(200)])

    assert engine.window == 256
    assert all(max(batch) * len(batch) <= 512 and len(batch) <= 64 for batch in model.batches)
    assert max(max(batch) - min(batch) for batch in model.batches) < 12


def test_the_backend_needs_a_profile_for_this_process() -> None:
    with pytest.raises(ConfigError, match=r"judge\.profile names no profile"):
        open_judge(JudgeSettings(backend="verifier"), HELPERS)
    with pytest.raises(ConfigError, match="is for a model behind a server"):
        open_judge(JudgeSettings(backend="verifier", profile="minicheck-7b"), HELPERS)


def test_a_folder_without_a_model_is_told(tmp_path: Path) -> None:
    settings = JudgeSettings.model_validate(
        {"backend": "verifier", "profile": "factcg", "verifier": {"model": str(tmp_path), "runtime": "onnx"}}
    )

    with pytest.raises(JudgeError, match=r"has no model\.onnx"):
        open_judge(settings, HELPERS)


def test_the_extra_is_named_where_it_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "torch", None)

    with pytest.raises(MissingDependencyError, match=r"rag-assay\[transformers\]"):
        open_judge(JudgeSettings(backend="verifier", profile="factcg"), HELPERS)


# Random weights of the real architectures, as transformers makes them.


@pytest.mark.filterwarnings("ignore:.*torch.jit.script:DeprecationWarning")  # of DeBERTa in transformers
@pytest.mark.parametrize("name", ["classifier", "factcg", "minicheck-ft5", "hhem-2.1", "lettucedetect"])
def test_transformers_probabilities_are_its_own(tmp_path: Path, name: str) -> None:
    model = save_random(tmp_path, name)
    transformers = pytest.importorskip("transformers")
    profile = profile_of(name)
    if name == "hhem-2.1":
        profile = profile.model_copy(update={"in_process": profile.in_process.model_copy(update={"foundation": None})})  # type: ignore[union-attr]
    loaded = TransformersModel(str(tmp_path), "main", profile.in_process)  # type: ignore[arg-type]
    judge = open_local_verifier(profile, str(tmp_path), loaded, SPLITTER, check_canaries=False)
    questions = [
        ask_verdict("It rains.", "It rains here."),
        ask_verdict("It snows.", "The ferry leaves at nine in May."),
    ]

    answers = judge.choose(questions)

    tokenizer = transformers.AutoTokenizer.from_pretrained(tmp_path)
    for question, answer in zip(questions, answers, strict=True):
        premise, claim = question.texts["context"], question.texts["claim"]
        wanted = own_probability(name, model, tokenizer, premise, claim)
        assert answer.probabilities is not None
        assert answer.probabilities["yes"] == pytest.approx(wanted, abs=1e-5)
        assert 0.001 < wanted < 0.999
        if name == "lettucedetect":
            spans = json.loads(answer.reply or "")["unsupported"]
            assert all(claim[span["start"] : span["end"]] == span["text"] for span in spans)


def test_a_model_within_another_is_found_by_its_key_mapping(tmp_path: Path) -> None:
    transformers = pytest.importorskip("transformers", reason="needs the extra transformers")
    safetensors = pytest.importorskip("safetensors.torch")
    save_random(tmp_path, "hhem-2.1")
    inner = safetensors.load_file(tmp_path / "model.safetensors")
    safetensors.save_file(
        {f"t5.{key}": value for key, value in inner.items()}, tmp_path / "model.safetensors", {"format": "pt"}
    )
    how = load_profile("hhem-2.1").in_process
    assert how is not None

    loaded = TransformersModel(str(tmp_path), "main", how.model_copy(update={"foundation": str(tmp_path)}))

    plain = transformers.T5ForTokenClassification.from_pretrained(tmp_path, key_mapping={"^t5\\.": ""})
    assert bool((loaded._network.classifier.weight == plain.classifier.weight).all())
    assert bool((loaded._network.classifier.weight.cpu() == inner["classifier.weight"]).all())


def test_windows_of_positions_count_from_behind_the_padding(tmp_path: Path) -> None:
    save_random(tmp_path, "classifier")
    how = load_profile(CLASSIFIER).in_process
    assert how is not None

    assert TransformersModel(str(tmp_path), "main", how).window == 512


@pytest.mark.filterwarnings("ignore:.*torch.jit.script:DeprecationWarning")  # of DeBERTa in transformers
@pytest.mark.parametrize(("adds_positions", "window"), [(False, None), (True, 512)])
def test_windows_of_deberta_end_where_it_adds_positions(
    tmp_path: Path, adds_positions: bool, window: int | None
) -> None:
    model = save_random(tmp_path, "factcg")
    model.config.position_biased_input = adds_positions
    type(model)(model.config).save_pretrained(tmp_path)
    how = load_profile("factcg").in_process
    assert how is not None

    assert TransformersModel(str(tmp_path), "main", how).window == window
