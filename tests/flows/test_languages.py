"""Rows of six languages in one run: what each has a score from, what has none and why, and what the run says of it."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from flows.config.run_config import RunConfig
from flows.evaluate import run_evaluation
from metric_core import reasons
from metric_core.records import Side
from tasks.runs.run_folder import RunFolder
from tests.flows.test_evaluate import scores
from tests.tasks.builders import says, script
from tests.tasks.reports.parsed_page import Page

pytestmark = [pytest.mark.prefect, pytest.mark.models, pytest.mark.usefixtures("prefect_stub")]

ROWS: Mapping[str, Mapping[str, Any]] = {
    "de": {
        "user_input": "Wo werden in der Stadt die Fahrräder repariert?",
        "response": "Die Fahrräder werden in der Werkstatt am Bahnhof repariert. Die Reparatur dauert zwei Tage.",
        "retrieved_contexts": ["Die Werkstatt am Bahnhof repariert Fahrräder, z. B. Räder. Sie braucht zwei Tage."],
        "reference": "Die Werkstatt am Bahnhof repariert die Fahrräder innerhalb von zwei Tagen.",
    },
    "en": {
        "user_input": "Where in the town are bicycles repaired?",
        "response": "Bicycles are repaired in the workshop at the station. A repair takes two days.",
        "retrieved_contexts": ["The workshop at the station repairs bicycles. It needs two days."],
        "reference": "The workshop at the station in Dublin repairs bicycles within two days.",
    },
    "es": {
        "user_input": "¿Dónde se reparan las bicicletas en la ciudad?",
        "response": "Las bicicletas se reparan en el taller de la estación. La reparación tarda dos días.",
        "retrieved_contexts": ["El taller de la estación repara bicicletas. Necesita dos días."],
        "reference": "El taller de la estación repara las bicicletas en dos días.",
    },
    "fr": {
        "user_input": "Où répare-t-on les vélos dans la ville ?",
        "response": "Les vélos sont réparés à l'atelier de la gare. La réparation prend deux jours.",
        "retrieved_contexts": ["L'Atelier du Pont répare les vélos près de la gare. Il lui faut deux jours."],
        "reference": "C'est l'Atelier du Pont qui répare les vélos en deux jours.",
    },
    "hi": {
        "user_input": "शहर में साइकिलों की मरम्मत कहाँ होती है?",
        "response": "साइकिलों की मरम्मत स्टेशन की कार्यशाला में होती है। मरम्मत में दो दिन लगते हैं।",
        "retrieved_contexts": ["स्टेशन की कार्यशाला साइकिलों की मरम्मत करती है। उसे दो दिन चाहिए।"],
        "reference": "स्टेशन की कार्यशाला दो दिन में साइकिलों की मरम्मत करती है।",
    },
    "ja": {
        "user_input": "町のどこで自転車を修理していますか。",
        "response": "自転車は駅の工房で修理されます。修理には二日かかります。",
        "retrieved_contexts": ["駅の工房は自転車を修理します。二日必要です。"],
        "reference": "駅の工房が二日で自転車を修理します。",
    },
}
"""Row of each language; the prompts are packaged in all but Japanese."""

OTHER_SCRIPTS = ("hi", "ja")
METRICS = ("faithfulness", "answer_similarity", "context_relevancy", "context_entity_recall")


def claims_of(language: str) -> list[str]:
    """Return the claims that the judge makes of a row: those in French come in English."""
    return [part.strip() for part in ROWS["en" if language == "fr" else language]["response"].split(". ")]


def answers() -> list[dict[str, Any]]:
    """Return a judge's script: claims of each response, all of them supported."""
    claims = [says("claims", row["response"], answer={"claims": claims_of(name)}) for name, row in ROWS.items()]
    verdicts = (says("verdict", answer={"yes": 0.9, "no": 0.1}), says("relevant_sentences", answer={"relevant": [1]}))
    return [*claims, *verdicts]


def evaluate(folder: Path, **options: Any) -> tuple[Path, Sequence[str]]:
    """Evaluate the rows, and an English answer to a question in Spanish; return the folder and its warnings."""
    mixed = {**ROWS["es"], "response": ROWS["en"]["response"]}
    source = folder / "rows.jsonl"
    named = {**ROWS, "mixed": mixed}
    lines = [{"id": name, "language": "es" if name == "mixed" else name, **row} for name, row in named.items()]
    source.write_text("\n".join(map(json.dumps, lines)), encoding="utf-8")
    values = {"source": str(source), "metrics": METRICS, "out": str(folder / "run"), "slices": ["language"], **options}
    evaluation = run_evaluation(RunConfig.model_validate(values))
    return Path(evaluation.folder), evaluation.warnings


def test_a_run_of_six_languages_says_what_has_no_score_and_what_is_in_another_language(tmp_path: Path) -> None:
    pipeline = pytest.importorskip("spacy").blank("fr")
    pipeline.add_pipe("sentencizer")
    pipeline.add_pipe("entity_ruler").add_patterns([{"label": "ORG", "pattern": "Atelier du Pont"}])
    pipeline.to_disk(tmp_path / "fr")
    judge, pipelines = script(tmp_path, *answers()).model_dump(), {"pipelines": {"fr": str(tmp_path / "fr")}}
    run, warnings = evaluate(tmp_path, judge=judge, language=pipelines)

    cells = scores(run)
    for name in (*ROWS, "mixed"):
        assert cells[name, "faithfulness"][:2] == (1.0, "scored")
        assert cells[name, "context_relevancy"][:2] == (0.5, "scored"), name  # each passage has two sentences
        _, *outcome = cells[name, "answer_similarity"]
        wanted = ["undefined", reasons.UNKNOWN_SCRIPT] if name in OTHER_SCRIPTS else ["scored", None]
        assert outcome == wanted, name
    assert cells["fr", "context_entity_recall"][:2] == (1.0, "scored")
    entities = pq.read_table(run / "stages" / "entities.parquet").to_pylist()
    french = [row for row in entities if row["row_id"] == "fr"]
    assert {row["side"] for row in french} == {Side.REFERENCE, Side.CONTEXT}
    assert "Atelier du Pont" in json.dumps(french)

    manifest = RunFolder(run).read_json("run.json")
    assert manifest["languages"] == {**dict.fromkeys(ROWS, 1), "es": 2}
    assert "the responses of 1 row are in another language than the question (English for Spanish 1)" in warnings
    (written,) = (warning for warning in warnings if warning.startswith("the judge wrote"))
    assert "the claims of 1 row in another language than the response (English for French 1)" in written
    (unmeasured,) = (warning for warning in warnings if "were not measured on" in warning)
    assert unmeasured.startswith("6 of 7 rows")
    assert unmeasured.endswith("the embedder: English; the pipeline of entities: English, French")
    assert written in Page((run / "report.html").read_text(encoding="utf-8")).text
    summary = RunFolder(run).read_json("summary.json")
    similarity = next(metric for metric in summary["metrics"] if metric["metric"] == "answer_similarity")
    assert (similarity["scored"], similarity["undefined"]) == (5, 2)
    assert similarity["reasons"] == {reasons.UNKNOWN_SCRIPT: 2}


def test_the_packaged_judge_has_no_verdict_on_scripts_that_it_cannot_read(tmp_path: Path) -> None:
    run, warnings = evaluate(tmp_path, metrics=["faithfulness"])
    cells = scores(run)
    unreadable = ["undefined", reasons.UNKNOWN_SCRIPT_TO_JUDGE]
    for name in ROWS:
        _, *outcome = cells[name, "faithfulness"]
        assert outcome == (unreadable if name in OTHER_SCRIPTS else ["scored", None]), name
    assert any(warning.startswith("6 of 7 rows are in languages") for warning in warnings)
