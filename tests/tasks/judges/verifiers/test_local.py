"""Verifiers in this process: the probabilities are those of the library that runs them, and nothing is cut."""

import json
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
import pytest
from tokenizers import Tokenizer, models, pre_tokenizers, processors

from metric_core.errors import ConfigError, JudgeError, MissingDependencyError
from metric_core.judge_questions import ask_verdict
from tasks.judges.verifiers.local_engine import LocalEngine, open_local_verifier
from tasks.judges.verifiers.onnx_model import OnnxModel
from tasks.judges.verifiers.transformers_model import TransformersModel
from tasks.judges.verifiers.verifier_judge import VerifierJudge
from tasks.models.local_verifiers import run_verifier
from tasks.options.judge_options import JudgeSettings
from tasks.profiles.load_profile import load_profile
from tasks.profiles.profile import Profile
from tests.tasks.judges.verifiers.conftest import SPLITTER

ONNX = Path(__file__).parent / "onnx_sum"
"""A model that adds up two numbers per word: an ONNX graph of five nodes, and a tokenizer of 21 words."""

SPECIAL = ("<s>", "<pad>", "</s>", "<unk>", "<mask>", "[CLS]", "[SEP]", "[PAD]", "[UNK]", "[MASK]")
QUESTIONS = [
    ask_verdict("It rains.", "It rains here."),
    ask_verdict("Bread costs seven euros, and so does the cake of the baker.", "Bread costs three euros. " * 9),
    ask_verdict("It snows. The ferry leaves.", "The ferry leaves at nine."),
]


def profile_of(name: str, **changes: Any) -> Profile:
    """Return a packaged profile with changes, and with small parts."""
    content = load_profile(name).model_dump(mode="json") | changes
    content["chunks"] |= {"window": 256, "premise": 150, "reserve": 64}
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
        text = profile.form.text.format(premise=question.texts["context"].strip(), claim=question.texts["claim"])  # type: ignore[union-attr]
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
        from tasks.judges.verifiers.local_model import Encoded

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


def test_texts_of_about_equal_length_share_a_batch() -> None:
    model = CountingModel()
    profile = profile_of("factcg")
    engine = LocalEngine(profile, model, 512)
    judge = open_local_verifier(profile, "m", model, SPLITTER, batch_tokens=512, check_canaries=False)
    model.batches.clear()

    judge.choose([ask_verdict(f"claim {number}", "word " * (number % 50 + 1)) for number in range(200)])

    assert engine.window == 256
    assert all(max(batch) * len(batch) <= 512 and len(batch) <= 64 for batch in model.batches)
    assert max(max(batch) - min(batch) for batch in model.batches) < 12


def test_the_backend_needs_a_profile_for_this_process() -> None:
    with pytest.raises(ConfigError, match=r"judge\.profile names no profile"):
        run_verifier(JudgeSettings(backend="verifier"), SPLITTER)
    with pytest.raises(ConfigError, match="is for a model behind a server"):
        run_verifier(JudgeSettings(backend="verifier", profile="minicheck-7b"), SPLITTER)


def test_a_folder_without_a_model_is_told(tmp_path: Path) -> None:
    settings = JudgeSettings.model_validate(
        {"backend": "verifier", "profile": "factcg", "verifier": {"model": str(tmp_path), "runtime": "onnx"}}
    )

    with pytest.raises(JudgeError, match=r"has no model\.onnx"):
        run_verifier(settings, SPLITTER)


def test_the_extra_is_named_where_it_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "torch", None)

    with pytest.raises(MissingDependencyError, match=r"rag-assay\[transformers\]"):
        run_verifier(JudgeSettings(backend="verifier", profile="factcg"), SPLITTER)


# Random weights of the real architectures, as transformers makes them.


def save_tokenizer(folder: Path, kind: str) -> None:
    """Save a byte-level tokenizer of single bytes with the special tokens of a family of models."""
    transformers = pytest.importorskip("transformers", reason="needs the extra transformers")
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    size = 256 + len(SPECIAL)
    vocabulary = {token: i for i, token in enumerate([*SPECIAL, *alphabet])}
    assert len(vocabulary) == size
    tokenizer = Tokenizer(models.BPE(vocab=vocabulary, merges=[]))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    first, last = {"roberta": ("<s>", "</s>"), "bert": ("[CLS]", "[SEP]"), "t5": ("", "</s>")}[kind]
    begin = f"{first} " if first else ""
    tokenizer.add_special_tokens(list(SPECIAL))
    tokenizer.post_processor = processors.TemplateProcessing(
        single=f"{begin}$A {last}",
        pair=f"{begin}$A {last} $B {last}",
        special_tokens=[(token, vocabulary[token]) for token in SPECIAL],
    )
    transformers.PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, pad_token="<pad>", eos_token=last, unk_token="<unk>"
    ).save_pretrained(folder)


def save_random(folder: Path, name: str) -> Any:
    """Save a small model of the architecture of a profile, with random weights, and return it."""
    torch = pytest.importorskip("torch", reason="needs the extra transformers")
    transformers = pytest.importorskip("transformers", reason="needs the extra transformers")
    torch.manual_seed(3)
    size = {"vocab_size": 266, "pad_token_id": 1, "initializer_range": 0.1 if name == "factcg" else 0.4}
    small = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 48}
    t5 = {
        "initializer_factor": 0.4,
        "d_model": 32,
        "d_ff": 48,
        "d_kv": 16,
        "num_layers": 2,
        "num_heads": 2,
        "vocab_size": 266,
        "pad_token_id": 1,
    }
    if name == "minicheck-roberta":
        config = transformers.RobertaConfig(**size, **small, max_position_embeddings=514, num_labels=2)
        model = transformers.RobertaForSequenceClassification(config)
    elif name == "factcg":
        config = transformers.DebertaV2Config(**size, **small, relative_attention=True, num_labels=2)
        model = transformers.DebertaV2ForSequenceClassification(config)
    elif name == "lettucedetect":
        config = transformers.ModernBertConfig(**size, **small, num_labels=2, max_position_embeddings=1024)
        model = transformers.ModernBertForTokenClassification(config)
    elif name == "minicheck-ft5":
        model = transformers.T5ForConditionalGeneration(transformers.T5Config(**t5, decoder_start_token_id=1))
    else:
        model = transformers.T5ForTokenClassification(transformers.T5Config(**t5, num_labels=2))
    model.eval().save_pretrained(folder)
    save_tokenizer(folder, "roberta" if "roberta" in name else "t5" if "t5" in name or "hhem" in name else "bert")
    return model


@pytest.mark.filterwarnings("ignore:.*torch.jit.script:DeprecationWarning")  # of DeBERTa in transformers
@pytest.mark.parametrize("name", ["minicheck-roberta", "factcg", "minicheck-ft5", "hhem-2.1", "lettucedetect"])
def test_transformers_probabilities_are_its_own(tmp_path: Path, name: str) -> None:
    model = save_random(tmp_path, name)
    torch, transformers = pytest.importorskip("torch"), pytest.importorskip("transformers")
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
        wanted = own_probability(name, torch, model, tokenizer, premise, claim)
        assert answer.probabilities is not None
        assert answer.probabilities["yes"] == pytest.approx(wanted, abs=1e-5)
        assert 0.001 < wanted < 0.999
        if name == "lettucedetect":
            spans = json.loads(answer.reply or "")["unsupported"]
            assert all(claim[span["start"] : span["end"]] == span["text"] for span in spans)


def own_probability(  # noqa: PLR0917 a model and its texts
    name: str, torch: Any, model: Any, tokenizer: Any, premise: str, claim: str
) -> float:
    """Return the probability of support as the makers of a model compute it, one text at a time."""
    with torch.inference_mode():
        if name == "lettucedetect":
            prompt = f"Summarize the following text:\npassage 1: {premise}\noutput:"
            inputs = tokenizer(prompt, claim, return_tensors="pt")
            marks = model(**inputs).logits.softmax(-1)[0, :, 1]
            count = len(tokenizer(claim, add_special_tokens=False)["input_ids"])
            return 1 - float(marks[-1 - count : -1].max())
        text = {
            "minicheck-roberta": f"{premise}</s>{claim}",
            "minicheck-ft5": f"predict: {premise}</s>{claim}",
            "hhem-2.1": (
                "<pad> Determine if the hypothesis is true given the premise?\n\n"
                f"Premise: {premise}\n\nHypothesis: {claim}"
            ),
            "factcg": (
                f'{premise}\n\nChoose your answer: based on the paragraph above can we conclude that "{claim}"?\n\n'
                "OPTIONS:\n- Yes\n- No\nI think the answer is "
            ),
        }[name]
        inputs = tokenizer(text, return_tensors="pt")
        inputs.pop("token_type_ids", None)
        if name == "minicheck-ft5":
            logits = model(**inputs, decoder_input_ids=torch.zeros((1, 1), dtype=torch.long)).logits[0, 0]
            return float(logits[[3, 209]].softmax(-1)[1])
        logits = model(**inputs).logits[0]
        return float((logits[0] if name == "hhem-2.1" else logits).softmax(-1)[1])


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
    save_random(tmp_path, "minicheck-roberta")
    how = load_profile("minicheck-roberta").in_process
    assert how is not None

    assert TransformersModel(str(tmp_path), "main", how).window == 512
