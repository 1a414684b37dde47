"""Warnings about texts that the models of a run were not made for."""

import pytest

from flows.execution.text_warnings import count_languages, text_warnings
from metric_core.stages import Stage
from tasks.runtime.usage import StageUsage
from tasks.tables.table_store import StageRef

MEASURED = {"model": "MiniLM", "languages": ["en"]}
MANIFEST = {"judge": {"backend": "builtin", "languages": ["en"]}, "embedder": MEASURED}


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


def test_rows_in_languages_that_no_model_was_measured_on_are_counted_over_shards() -> None:
    shards = [ref(languages={"en": 2, "zh": 1}), ref(languages={"de": 1, "zh": 2, "und": 4})]
    (warning,) = text_warnings(shards, MANIFEST)
    assert warning.startswith("4 of 10 rows are in languages that models of this run were not measured on (")
    assert "Chinese 3" in warning
    assert warning.endswith("Measured on: the judge and the embedder: English")
    assert next(iter(count_languages(shards).items())) == ("und", 4)


@pytest.mark.parametrize(
    ("manifest", "languages"),
    [
        (MANIFEST, {"en": 3, "und": 1}),
        ({"judge": {"backend": "server", "languages": []}, "embedder": {"model": "bge"}}, {"zh": 3}),
        ({"judge": {"backend": "server"}, "embedder": {"model": "bge"}}, {}),
    ],
    ids=["measured language", "models that do not say", "old tables"],
)
def test_there_is_no_warning_without_a_known_difference(manifest: dict[str, object], languages: dict[str, int]) -> None:
    assert text_warnings([ref(languages=languages)], manifest) == []
