"""Whole runs judged by a verifier in this process, alone: sentences are claims, and what needs writing is undefined."""

import json
import math
from collections import defaultdict
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
import pyarrow.parquet as pq
import pytest
from tokenizers import Tokenizer

from flows.config.run_config import RunConfig
from flows.evaluate import run_evaluation
from metric_core import reasons
from metric_core.errors import JudgeError
from metric_core.records import Sample
from tasks.opening.local_models import load_pipeline
from tasks.options.language_options import LanguageSettings
from tests.tasks.models.judges.verifiers.random_models import own_probability, save_random

pytestmark = [pytest.mark.prefect, pytest.mark.models, pytest.mark.usefixtures("prefect_stub")]

ONNX = Path(__file__).parents[1] / "tasks" / "models" / "judges" / "verifiers" / "onnx_sum"
ROWS: list[dict[str, Any]] = [
    {
        "id": f"r{number}",
        "user_input": "When does the ferry leave, and what does bread cost?",
        "response": f"The ferry leaves at nine. Bread costs {number + 3} euros.",
        "retrieved_contexts": ["The ferry to Ornholm leaves at nine. It rains in the morning."],
        "reference": "The ferry leaves at nine.",
    }
    for number in range(2)
]

NEED_NO_WRITING = {
    "faithfulness",
    "context_recall",
    "context_entity_recall",
    "answer_similarity",
    "answer_correctness",
    "factual_correctness",
    "noise_sensitivity",
}
SAID = "No judge of this run writes claims, so each sentence of a text is one claim."

Own = Callable[[str, str], float]


def config_of(folder: Path, model: Path, **judge: Any) -> RunConfig:
    source = folder / "rows.jsonl"
    source.write_text("\n".join(map(json.dumps, ROWS)), encoding="utf-8")
    chosen = {"backend": "verifier", "canaries": False, "verifier": {"model": str(model)}, **judge}
    stores = {"out": str(folder / "run"), "tables": str(folder / "tables"), "cache": str(folder / "answers.db")}
    return RunConfig.model_validate({"source": str(source), "judge": chosen, "fail_on_failed": 0.01, **stores})


def check_verdicts(folder: Path, own: Own) -> None:
    """Check that verdicts have the model's own probabilities, on the sentences of the texts."""
    claims = pq.read_table(folder / "stages" / "claims.parquet").to_pylist()
    texts = {(row["row_id"], row["claim_id"]): row["text"] for row in claims}
    samples: Mapping[str, Mapping[str, Any]] = {row["id"]: row for row in ROWS}
    premises = {"response": "response", "reference": "reference"}  # short ones stand behind their question
    checked = 0
    assert "The ferry leaves at nine." in texts.values()
    for row in pq.read_table(folder / "stages" / "verdicts.parquet").to_pylist():
        if row["kind"] != "support" or row["status"] != "answered":
            continue
        sample = samples[row["row_id"]]
        said = sample.get(premises.get(row["premise"], ""))
        asked = Sample(user_input=sample["user_input"])
        premise = sample["retrieved_contexts"][0] if said is None else asked.with_question(said)
        wanted = own(premise, texts[row["row_id"], row["claim_id"]])
        assert row["probability"] == pytest.approx(wanted, abs=1e-5)
        checked += 1
    assert checked >= 3 * len(ROWS)


def check_scores(folder: Path) -> None:
    """Check that the metrics of the default suite are scored, unless they need a judge that writes or rates."""
    outcomes: dict[str, set[tuple[str, str | None]]] = defaultdict(set)
    for row in pq.read_table(folder / "scores.parquet").to_pylist():
        outcomes[row["metric"]].add((row["status"], row["reason"]))
    scored = {metric for metric, outcome in outcomes.items() if outcome == {("scored", None)}}
    others = {
        metric for metric, outcome in outcomes.items() if outcome == {("undefined", reasons.NEEDS_LANGUAGE_MODEL)}
    }
    assert scored == NEED_NO_WRITING
    assert others == outcomes.keys() - scored > {"answer_relevancy", "context_precision"}


def check_claims(folder: Path) -> None:
    """Check that the run says that sentences are claims."""
    manifest = json.loads((folder / "run.json").read_text(encoding="utf-8"))
    assert [(role["groups"], role["backend"]) for role in manifest["judges"]] == [
        (["verdicts"], "verifier"),
        (["writing"], "sentences"),
    ]
    assert SAID in manifest["judge"]["note"]
    assert any("canaries = false" in warning for warning in manifest["warnings"])


def test_a_verifier_alone_that_onnxruntime_runs(tmp_path: Path) -> None:
    result = run_evaluation(config_of(tmp_path, ONNX, profile="factcg"))

    folder = Path(result.folder)
    tokenizer = Tokenizer.from_file(str(ONNX / "tokenizer.json"))
    session = onnxruntime.InferenceSession(str(ONNX / "model.onnx"))

    def own(premise: str, claim: str) -> float:
        text = (
            f'{premise}\n\nChoose your answer: based on the paragraph above can we conclude that "{claim}"?\n\n'
            "OPTIONS:\n- Yes\n- No\nI think the answer is "
        )
        ids = np.array([tokenizer.encode(text).ids])
        (logits,) = session.run(None, {"input_ids": ids, "attention_mask": np.ones_like(ids)})
        return 1 / (1 + math.exp(float(logits[0, 0]) - float(logits[0, 1])))

    check_verdicts(folder, own)
    check_scores(folder)
    check_claims(folder)


@pytest.mark.filterwarnings("ignore:.*torch.jit.script:DeprecationWarning")  # of DeBERTa in transformers
def test_a_verifier_alone_that_transformers_runs(tmp_path: Path) -> None:
    transformers = pytest.importorskip("transformers", reason="needs the extra transformers: `just test-transformers`")
    model = save_random(tmp_path / "model", "factcg")
    tokenizer = transformers.AutoTokenizer.from_pretrained(tmp_path / "model")

    result = run_evaluation(config_of(tmp_path, tmp_path / "model", profile="factcg"))

    folder, pipeline = Path(result.folder), load_pipeline(LanguageSettings())

    def own(premise: str, claim: str) -> float:
        lines = "\n".join(pipeline.sentences([premise])[0])  # as the makers of FactCG join sentences
        return own_probability("factcg", model, tokenizer, lines, claim)

    check_verdicts(folder, own)
    check_scores(folder)
    check_claims(folder)


def test_a_run_ends_when_the_canaries_fail(tmp_path: Path) -> None:
    with pytest.raises(JudgeError, match="does not answer as its profile factcg says"):
        run_evaluation(config_of(tmp_path, ONNX, profile="factcg", canaries=True))
