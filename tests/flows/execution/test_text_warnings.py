"""Warnings about texts that the models of a run were not made for."""

import pytest

from flows.execution.text_warnings import text_warnings
from metric_core.stages import Stage
from tasks.runtime.usage import StageUsage
from tasks.tables.table_store import StageRef

MANIFEST = {"embedder": {"model": "MiniLM"}}


def ref(**noticed: object) -> StageRef:
    usage = StageUsage.model_validate(noticed)
    return StageRef(stage=Stage.SIMILARITY, path="t", digest="d", rows=1, schema_version=1, usage=usage)


@pytest.mark.parametrize(
    ("counts", "expected"),
    [
        ((0, 0), []),
        ((1, 0), ["1 text is longer than"]),
        ((1_000, 234), ["1,234 texts are longer than the embedder MiniLM"]),
    ],
)
def test_long_texts_of_all_shards_are_counted(counts: tuple[int, ...], expected: list[str]) -> None:
    warnings = text_warnings([ref(long_texts=count) for count in counts], MANIFEST)
    assert len(warnings) == len(expected)
    assert all(warning.startswith(start) for warning, start in zip(warnings, expected, strict=True))
