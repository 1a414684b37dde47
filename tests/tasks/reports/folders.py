"""Functions that write run folders: a small one with hostile data, and one of many rows."""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any, TypeAlias

import pyarrow as pa
import pyarrow.parquet as pq

from metric_core.records import Direction, Score, Status
from metric_core.schemas import SCHEMAS
from metric_core.stages import Stage
from metric_core.statistics.summary import summarize
from tests.run_records import record_json

ATTACK = (
    "</script><script>window.broken=1</script><!-- <script> "
    '<img src="https://evil.example/x.png" onerror="window.broken=1"><svg onload=window.broken=1>'
    "<iframe src=javascript:window.broken=1></iframe>\"'><b>&amp; \u2028 \u2029 \x07 ]]>{{ 7 * 7 }}{% raw %}"
)
HOSTILE_ID = "row/7 <b>&'\"%41#\u00e9\U0001f600"
RIGHT_TO_LEFT = (
    "\u05e9\u05dc\u05d5\u05dd \u202eolleh\u202c \u0645\u0631\u062d \U0001f468\u200d\U0001f469\u200d\U0001f467"
)
REPLY = '{"claims": ["It opened in 1653.", "It is white."]}'
LONG = "Words without end. " * 5300
UNBROKEN = "unbroken" * 50
NOTE = 'A baseline: agrees with people at 0.75 <AUROC> & "less" than a language model\'s 0.9.'

METRICS: dict[str, dict[str, Any]] = {
    "faithfulness": {"direction": "higher", "bounds": [0.0, 1.0]},
    "noise_sensitivity": {"direction": "lower", "bounds": [0.0, 1.0], "parameters": {"mode": "relevant"}},
    "context_entity_recall": {"direction": "higher", "bounds": [0.0, 1.0], "parameters": {"match": "normalized"}},
    "nv_accuracy": {"direction": "higher", "bounds": [0.0, 1.0], "language_model": True},
    "house_style": {"direction": "neither", "bounds": None, "parameters": {"definition": ATTACK}},
    "instance_rubrics": {"direction": "higher", "bounds": None},
}
_NEEDS_MODEL = Score.undefined("needs a language-model judge")
_NO_REPLY = Score.failed("no usable reply from the judge")

SCORES: dict[str, dict[str, Score]] = {
    "good": {
        "faithfulness": Score.scored(1.0),
        "noise_sensitivity": Score.scored(0.0),
        "context_entity_recall": Score.scored(0.5),
        "house_style": Score.labelled("formal"),
        "instance_rubrics": Score.scored(4.0, "1-5"),
    },
    HOSTILE_ID: {
        "faithfulness": Score.scored(0.0),
        "noise_sensitivity": Score.scored(1.0),
        "context_entity_recall": Score.undefined("no entities in the reference"),
        "house_style": Score.labelled(ATTACK),
        "instance_rubrics": Score.scored(1.0, "0-1"),
    },
    "long": {
        "faithfulness": Score.scored(0.5),
        "noise_sensitivity": Score.scored(0.75),
        "context_entity_recall": Score.undefined("no entities in the reference"),
        "house_style": Score.labelled("formal"),
        "instance_rubrics": Score.undefined("no rubrics"),
    },
    "empty": {
        "faithfulness": _NO_REPLY,
        "noise_sensitivity": Score.undefined("no retrieved contexts"),
        "context_entity_recall": Score.undefined("no retrieved contexts"),
        "house_style": Score.failed(ATTACK),
        "instance_rubrics": Score.undefined("no rubrics"),
    },
}

ANSWERED = {"status": "answered"}

Rows: TypeAlias = list[dict[str, Any]]

SAMPLES: Rows = [
    {
        "row_id": "good",
        "user_input": "When did the Taj Mahal open in Agra?",
        "response": "It opened in 1653. It is white.",
        "retrieved_contexts": ["Rain falls. The taj mahal\n  opened in 1653.", "Marble is white."],
        "reference": "The Taj Mahal in Agra opened in 1653.",
        "retrieved_context_ids": ["a", "b"],
        "rubrics": [{"key": "score1_description", "description": "bad"}],
        "extras": '{"topic": "history"}',
    },
    {
        "row_id": HOSTILE_ID,
        "user_input": ATTACK,
        "response": ATTACK,
        "retrieved_contexts": [ATTACK, RIGHT_TO_LEFT, ""],
        "reference": ATTACK,
        "extras": json.dumps({ATTACK: ATTACK}),
    },
    {
        "row_id": "long",
        "user_input": RIGHT_TO_LEFT,
        "response": LONG,
        "retrieved_contexts": [LONG] * 3,
        "reference": "x",
    },
    {"row_id": "empty", "user_input": None, "response": "", "retrieved_contexts": None, "reference": None},
]

CLAIMS: Rows = [
    {
        "row_id": "good",
        "side": "response",
        "claim_id": "response:0",
        "text": "It opened in 1653.",
        "reply": REPLY,
        **ANSWERED,
    },
    {"row_id": "good", "side": "response", "claim_id": "response:1", "text": "It is white.", **ANSWERED},
    {"row_id": "good", "side": "reference", "claim_id": "reference:0", "text": "It is in Agra.", **ANSWERED},
    {
        "row_id": "good",
        "side": "context_sentence",
        "claim_id": "context_sentence:0:0",
        "text": "Rain falls.",
        **ANSWERED,
    },
    {
        "row_id": "good",
        "side": "context_sentence",
        "claim_id": "context_sentence:0:1",
        "text": "The taj mahal opened in 1653.",
        **ANSWERED,
    },
    {"row_id": "good", "side": "context_sentence", "claim_id": "context_sentence:1:0", "text": "Marble.", **ANSWERED},
    {
        "row_id": HOSTILE_ID,
        "side": "response",
        "claim_id": "response:0",
        "text": ATTACK,
        "reply": ATTACK,
        **ANSWERED,
    },
    {
        "row_id": "empty",
        "side": "response",
        "status": "failed",
        "reason": "no usable reply from the judge",
        "reply": "{",
    },
]

_SUPPORT = {"kind": "support", **ANSWERED}
_PANEL = [
    {"judge": "small", "label": "yes", "probability": 0.7},
    {"judge": ATTACK, "label": None, "probability": None},
]
_RELEVANCE = {"kind": "relevance", "premise": "user_input", **ANSWERED}

VERDICTS: Rows = [
    {"row_id": "good", "claim_id": "response:0", "premise": "context:0", "verdict": 1, "probability": 0.8, **_SUPPORT},
    {"row_id": "good", "claim_id": "response:0", "premise": "reference", "verdict": 1, "probability": 0.9, **_SUPPORT},
    {
        "row_id": "good",
        "claim_id": "response:0",
        "premise": "contexts",
        "verdict": 0,
        "probability": 0.25,
        "panel": _PANEL,
        **_SUPPORT,
    },
    {
        "row_id": "good",
        "claim_id": "response:1",
        "premise": "contexts",
        "kind": "support",
        "status": "failed",
        "reason": "no usable verdict from the judge",
        "reply": "I would rather not say.",
    },
    {
        "row_id": "good",
        "kind": "usefulness_for_reference",
        "claim_id": "",
        "premise": "context:1",
        "verdict": 0,
        "probability": 0.1,
        **ANSWERED,
    },
    {"row_id": "good", "claim_id": "context_sentence:0:0", "verdict": 0, "reply": '{"relevant": [2, 3]}', **_RELEVANCE},
    {"row_id": "good", "claim_id": "context_sentence:0:1", "verdict": 1, **_RELEVANCE},
    {"row_id": "good", "claim_id": "context_sentence:1:0", "verdict": 1, **_RELEVANCE},
    {"row_id": HOSTILE_ID, "claim_id": "response:0", "premise": "contexts", "verdict": 1, **_SUPPORT},
]

_SUPPORTED_BY_CONTEXTS = {"kind": "support", "claim_id": "response:0", "premise": "contexts"}

EXPLANATIONS: Rows = [
    {"row_id": "good", "text": "No passage names the year.", **_SUPPORTED_BY_CONTEXTS, **ANSWERED},
    {"row_id": HOSTILE_ID, "text": ATTACK, "reply": ATTACK, **_SUPPORTED_BY_CONTEXTS, **ANSWERED},
    {
        "row_id": "good",
        "kind": "usefulness_for_reference",
        "claim_id": "",
        "premise": "context:1",
        "status": "failed",
        "reason": "no usable reply from the judge",
    },
]

ENTITIES: Rows = [
    {"row_id": "good", "side": "reference", "text": "The Taj Mahal", "label": "FAC", **ANSWERED},
    {"row_id": "good", "side": "reference", "text": "Agra", "label": "GPE", **ANSWERED},
    {"row_id": "good", "side": "context", "passage": 0, "text": "taj mahal", "label": "FAC", **ANSWERED},
    {"row_id": HOSTILE_ID, "side": "reference", "text": ATTACK, "label": ATTACK, **ANSWERED},
    {"row_id": "empty", "side": "reference", "status": "undefined", "reason": "no entities in the reference"},
]

QUESTIONS: Rows = [
    {"row_id": "good", "k": 0, "text": "When did it open?", "noncommittal": False, **ANSWERED},
    {"row_id": HOSTILE_ID, "k": 0, "text": ATTACK, "noncommittal": True, "reply": ATTACK, **ANSWERED},
    {"row_id": "empty", "status": "undefined", "reason": "empty response"},
]

SIMILARITIES: Rows = [
    {"row_id": "good", "pair": "question", "k": 0, "cosine": 0.5, **ANSWERED},
    {"row_id": "good", "pair": "answer", "k": 0, "cosine": -0.0001, **ANSWERED},
]

RATINGS: Rows = [
    {
        "row_id": HOSTILE_ID,
        "metric": "house_style",
        "template": ATTACK,
        "vote": 0,
        "value": ATTACK,
        "probabilities": [{"label": ATTACK, "probability": 0.5}],
        "feedback": ATTACK,
        "reply": ATTACK,
        "panel": _PANEL,
        **ANSWERED,
    },
    {
        "row_id": "good",
        "metric": "nv_accuracy",
        "template": "accuracy_1",
        "vote": 0,
        "status": "undefined",
        "reason": "needs a language-model judge",
    },
]

STAGES: dict[Stage, Rows] = {
    Stage.SAMPLES: [{**sample, "row_number": number} for number, sample in enumerate(SAMPLES, start=1)],
    Stage.CLAIMS: CLAIMS,
    Stage.ENTITIES: ENTITIES,
    Stage.QUESTIONS: QUESTIONS,
    Stage.VERDICTS: VERDICTS,
    Stage.RATINGS: RATINGS,
    Stage.SIMILARITY: SIMILARITIES,
    Stage.EXPLANATIONS: EXPLANATIONS,
}


def write_hostile_run(folder: Path) -> Path:
    """Write a run of four rows with every kind of evidence and with texts that attack the page."""
    scores = {row_id: {"nv_accuracy": _NEEDS_MODEL, **cells} for row_id, cells in SCORES.items()}
    bad_rows = [{"number": 3, "column": ATTACK, "problem": ATTACK}]
    figures = {"kappa": {"value": 0.6, "low": 0.4, "high": 0.8}}
    means = {"mean": 0.5, "low": 0.4, "high": 0.6, "scored": 4, "undefined": 0, "failed": 0}
    anchor = {
        "source": f"data/{ATTACK}",
        "folder": "anchor",
        "rows": 4,
        "usage": {"questions": 8, "asked": 8},
        "metrics": {ATTACK: {**means, "mean": None, "low": None, "high": None}, "faithfulness": means},
        "left_out": {ATTACK: [UNBROKEN]},
        "agreement": {
            ATTACK: {"label": ATTACK, "reason": ATTACK},
            "faithfulness": {"label": "x", "compared": 4, "figures": figures},
        },
    }
    more = {"bad_rows": bad_rows, "rows_read": 5, "warnings": [ATTACK, UNBROKEN], "anchor": anchor}
    return write_run(folder, scores, STAGES, METRICS, more)


def write_large_run(folder: Path, rows: int, text: str = "Why?") -> Path:
    """Write a run of many rows with one metric: row 0 is the best, the last row is the worst."""
    ids = [f"row-{i}" for i in range(rows)]
    scores = {row_id: {"faithfulness": Score.scored(1 - i / rows)} for i, row_id in enumerate(ids)}
    samples = [
        {"row_id": row_id, "row_number": i, "user_input": text, "retrieved_contexts": [text]}
        for i, row_id in enumerate(ids, start=1)
    ]
    return write_run(folder, scores, {Stage.SAMPLES: samples}, {"faithfulness": METRICS["faithfulness"]}, {})


def write_run(
    folder: Path,
    scores: Mapping[str, Mapping[str, Score]],
    stages: Mapping[Stage, Sequence[Mapping[str, Any]]],
    metrics: Mapping[str, Mapping[str, Any]],
    manifest: Mapping[str, Any],
) -> Path:
    """Write a run folder without its report."""
    (folder / "stages").mkdir(parents=True)
    cells = [
        {"row_id": row_id, "metric": metric, **_fields(row[metric])}
        for row_id, row in scores.items()
        for metric in metrics
    ]
    write_table(folder / "scores.parquet", Stage.AGGREGATION, cells)
    for stage, rows in stages.items():
        write_table(folder / "stages" / f"{stage}.parquet", stage, rows)
    summaries = [
        summarize(metric, Direction(entry["direction"]), [row[metric] for row in scores.values()])
        for metric, entry in metrics.items()
    ]
    write_json(folder / "summary.json", {"rows": len(scores), "metrics": [asdict(summary) for summary in summaries]})
    write_json(folder / "run.json", record_json({**build_manifest(len(scores), metrics, stages), **manifest}))
    return folder


def write_table(path: Path, stage: Stage, rows: Sequence[Mapping[str, Any]]) -> None:
    """Write the table of a stage."""
    pq.write_table(pa.Table.from_pylist(list(rows), schema=SCHEMAS[stage].arrow), path)


def write_json(path: Path, content: Any) -> None:
    """Write a JSON file."""
    path.write_text(json.dumps(content), encoding="utf-8")


def _fields(score: Score) -> dict[str, Any]:
    return {"value": score.value, "status": Status(score.status), "reason": score.reason, "label": score.label}


def build_manifest(rows: int, metrics: Mapping[str, Mapping[str, Any]], stages: Iterable[Stage]) -> dict[str, Any]:
    """Return the manifest of a finished run."""
    usage = {"questions": 12, "prompt_tokens": 3456, "cached_tokens": 0, "output_tokens": 78, "seconds": 1.5}
    return {
        "format": 1,
        "status": "completed",
        "run_id": "0f0e-run",
        "created": "2026-02-11T14:03:22+00:00",
        "seconds": 21.4,
        "source": "data/handbook.jsonl",
        "rows": rows,
        "rows_read": rows,
        "bad_rows": [],
        "config": {},
        "judge": {"backend": "builtin", "model": "linear", "revision": "r1", "note": NOTE, "language_model": False},
        "embedder": {"backend": "minilm", "model": "MiniLM", "revision": "r2", "dimensions": 384},
        "language": {"backend": "spacy", "model": "small", "revision": "r3"},
        "versions": {"python": "3.11.7", "rag-assay": "0.1.0"},
        "metrics": [
            {
                "key": key,
                "name": key,
                "summary": f"{key} in a line",
                "family": key,
                "parameters": {},
                "language_model": False,
                **entry,
            }
            for key, entry in metrics.items()
        ],
        "stages": {stage: {"rows": 9, **usage, "failed": {"no usable reply from the judge": 2}} for stage in stages},
        "usage": usage,
    }
