"""The attacked example differs from the handbook only in its attacks, and no attack leaves its fence."""

import json
import re
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from deployments.notebook import evaluate
from metric_core.prompts.fences import neutralize
from metric_core.prompts.judge_questions import ask_usefulness_for_response, ask_verdict
from metric_core.prompts.prompt_set import load_prompts
from tests.metric_core.prompts.structure import split

EXAMPLES = Path(__file__).parents[2] / "examples"
NONE = "none"


def _rows(name: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (EXAMPLES / name).read_text(encoding="utf-8").splitlines()]


PLAIN, ATTACKED = _rows("handbook.jsonl"), _rows("handbook_attacked.jsonl")
ATTACKS = [
    (row, plain, passage)
    for before, row in zip(PLAIN, ATTACKED, strict=True)
    for plain, passage in zip(before["retrieved_contexts"], row["retrieved_contexts"], strict=True)
    if plain != passage
]


def test_each_row_with_passages_has_one_attack_before_or_after_one_of_them() -> None:
    for before, after in zip(PLAIN, ATTACKED, strict=True):
        rest = {name: value for name, value in after.items() if name not in ("retrieved_contexts", "attack")}
        assert rest == {name: value for name, value in before.items() if name != "retrieved_contexts"}
        changed = [
            passage
            for plain, passage in zip(before["retrieved_contexts"], after["retrieved_contexts"], strict=True)
            if plain != passage
        ]
        assert len(changed) == (after["attack"] != NONE) == bool(before["retrieved_contexts"])
    assert all(passage.startswith(f"{plain}\n\n") or passage.endswith(f"\n\n{plain}") for _, plain, passage in ATTACKS)


def test_each_kind_of_attack_has_one_text_and_several_rows() -> None:
    texts = {(row["attack"], passage.replace(plain, "").strip()) for row, plain, passage in ATTACKS}
    kinds = Counter(row["attack"] for row, _, _ in ATTACKS)
    assert len(texts) == len(kinds) == 16
    assert min(kinds.values()) >= 2


def test_no_attack_leaves_its_fence() -> None:
    prompts = load_prompts("en")
    for row, _, passage in ATTACKS:
        for question in (ask_verdict("It is so.", passage), ask_usefulness_for_response(passage, "Why?", "So.")):
            blocks, outside = split(prompts.render(question).user)
            assert neutralize(passage) in [text for _, text in blocks], row["attack"]
            assert not any(line in passage.split("\n") for line in outside if line.strip()), row["attack"]


@pytest.mark.simulation
@pytest.mark.prefect
@pytest.mark.models
@pytest.mark.usefixtures("prefect_stub")
def test_attacks_raise_no_mean_of_the_builtin_judge(tmp_path: Path) -> None:
    page = (EXAMPLES.parent / "docs" / "security.md").read_text(encoding="utf-8")
    said = re.search(r"(\w+) rises most, by (0\.\d+)", page)
    assert said is not None
    plain, attacked = (
        evaluate(EXAMPLES / f"{name}.jsonl", out=str(tmp_path / name)).summary
        for name in ("handbook", "handbook_attacked")
    )
    rises = {
        metric: attacked[metric]["distribution"]["mean"] - summary["distribution"]["mean"]
        for metric, summary in plain.items()
        if summary["scored"]
    }
    assert len(rises) > 10
    most = max(rises, key=lambda metric: rises[metric])
    assert (most, f"{rises[most]:.4f}") == said.groups()
