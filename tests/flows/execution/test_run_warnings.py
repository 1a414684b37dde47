"""Warnings about texts that the models of a run were not made for."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from flows.execution.run_warnings import count_languages, text_warnings, warn_of_unread_markers
from metric_core.stages import Stage
from tasks.rows.computed_tables import RunTables
from tasks.rows.row_store import RowStore
from tasks.runtime.usage import StageUsage
from tests.run_records import make_record

MEASURED = {"model": "MiniLM", "languages": ["en"]}
MANIFEST: dict[str, Any] = {"judge": {"backend": "builtin", "languages": ["en"]}, "embedder": MEASURED}


def tables(folder: Path, stage: Mapping[str, object], *stages: Mapping[str, object]) -> RunTables:
    """Return the tables of a run whose stages noticed something: the stage `similarity`, and others."""
    usages = zip((Stage.SIMILARITY, Stage.CLAIMS), (stage, *stages), strict=False)
    noticed = {name: StageUsage.model_validate(usage) for name, usage in usages}
    return RunTables(RowStore(str(folder)), (), dict.fromkeys(noticed, ()), noticed)


@pytest.mark.parametrize(
    ("counts", "expected"),
    [
        ((0, 0), []),
        ((1, 0), ["1 text is longer than"]),
        ((1_000, 234), ["1,234 texts are longer than the embedder MiniLM"]),
    ],
)
def test_long_texts_of_all_stages_are_counted(counts: tuple[int, int], expected: list[str], tmp_path: Path) -> None:
    first, second = ({"long_texts": count} for count in counts)
    warnings = text_warnings(tables(tmp_path, first, second), make_record(MANIFEST))
    assert len(warnings) == len(expected)
    assert all(warning.startswith(start) for warning, start in zip(warnings, expected, strict=True))


def test_rows_in_languages_that_no_model_was_measured_on_are_counted(tmp_path: Path) -> None:
    found = tables(tmp_path, {"languages": {"en": 2, "zh": 3, "de": 1, "und": 4}})
    (warning,) = text_warnings(found, make_record(MANIFEST))
    assert warning.startswith("4 of 10 rows are in languages that models of this run were not measured on (")
    assert "Chinese 3" in warning
    assert warning.endswith("Measured on: the judge and the embedder: English")
    assert next(iter(count_languages(found).items())) == ("und", 4)


def test_texts_in_another_language_than_they_should_be_are_counted(tmp_path: Path) -> None:
    found = tables(tmp_path, {"other_languages": {"claims de en": 3, "claims fr en": 1200, "response es en": 1}})
    response, claims = text_warnings(found, make_record())
    assert response == "the responses of 1 row are in another language than the question (English for Spanish 1)"
    assert "claims of 1,203 rows in another language" in claims
    assert "(English for French 1,200, English for German 3)" in claims


@pytest.mark.parametrize(
    ("manifest", "languages"),
    [
        (MANIFEST, {"en": 3, "und": 1}),
        ({"judge": {"backend": "server", "languages": []}, "embedder": {"model": "bge"}}, {"zh": 3}),
        ({"judge": {"backend": "server"}, "embedder": {"model": "bge"}}, {}),
    ],
    ids=["measured language", "models that do not say", "old tables"],
)
def test_there_is_no_warning_without_a_known_difference(
    manifest: dict[str, Any], languages: dict[str, int], tmp_path: Path
) -> None:
    assert text_warnings(tables(tmp_path, {"languages": languages}), make_record(manifest)) == []


class SampleShards:
    """The samples of a run with these responses."""

    stages = (Stage.SAMPLES, Stage.CLAIMS)

    def __init__(self, *responses: str | None) -> None:
        self._responses = responses

    def shards(self, stage: Stage, columns: list[str]) -> Iterator[pa.Table]:
        assert stage is Stage.SAMPLES
        rows = [{"response": response, "retrieved_context_ids": ["doc-1"]} for response in self._responses]
        yield pa.Table.from_pylist(rows).select(columns)


def test_responses_that_may_cite_in_another_form_are_counted() -> None:
    shards: Any = SampleShards("It rains {1}.", "It pours {2}. It snows {1}.", "It is dry [doc-1].", None)
    (warning,) = warn_of_unread_markers(shards, None)
    assert warning == (
        "2 of 3 responses hold what looks like citation markers of a form that is not read: '{1}', '{2}'; "
        "citation_pattern (--citation-pattern) has them read"
    )
    assert warn_of_unread_markers(shards, r"\{(\d)\}") == []
