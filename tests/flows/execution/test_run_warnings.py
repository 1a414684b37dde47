"""Warnings about texts that the models of a run were not made for."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from flows.execution.run_warnings import LanguageCounts, count_languages, text_warnings, warn_of_unread_markers
from metric_core.stages import Stage
from tasks.rows.computed_tables import RunTables
from tasks.rows.records import build_table
from tasks.rows.row_store import RowStore
from tasks.rows.stage_rows import StageRows
from tasks.runtime.usage import StageUsage
from tests.run_records import make_record

MEASURED = {"model": "MiniLM", "languages": ["en"]}
NO_LANGUAGES = LanguageCounts({}, {})
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
    warnings = text_warnings(tables(tmp_path, first, second), make_record(MANIFEST), NO_LANGUAGES)
    assert len(warnings) == len(expected)
    assert all(warning.startswith(start) for warning, start in zip(warnings, expected, strict=True))


def test_rows_in_languages_that_no_model_was_measured_on_are_counted(tmp_path: Path) -> None:
    found = LanguageCounts({"en": 2, "zh": 3, "de": 1, "und": 4}, {})
    (warning,) = text_warnings(tables(tmp_path, {}), make_record(MANIFEST), found)
    assert warning.startswith("4 of 10 rows are in languages that models of this run were not measured on (")
    assert "Chinese 3" in warning
    assert warning.endswith("Measured on: the judge and the embedder: English")


def test_texts_in_another_language_than_they_should_be_are_counted(tmp_path: Path) -> None:
    others = {("claims", "en", "de"): 3, ("claims", "en", "fr"): 1200, ("response", "en", "es"): 1}
    response, claims = text_warnings(tables(tmp_path, {}), make_record(), LanguageCounts({}, others))
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
    assert text_warnings(tables(tmp_path, {}), make_record(manifest), LanguageCounts(languages, {})) == []


def test_the_rows_of_a_run_are_counted_and_no_others_of_the_same_segment(tmp_path: Path) -> None:
    other = {"text": "claims", "language": "en", "expected_language": "de"}
    rows = [
        {"row_id": f"row-{number}", "language": language, "others": others}
        for number, (language, others) in enumerate([("en", []), ("de", [other]), ("fr", [other]), ("de", [])])
    ]
    table, store = build_table(Stage.LANGUAGES, rows), RowStore(str(tmp_path))
    found = StageRows.from_table(Stage.LANGUAGES, table, table["row_id"].combine_chunks())
    places = store.append(Stage.LANGUAGES, "detect", found, found.digests, StageUsage())
    shards = [places.select(np.array(chosen)) for chosen in ([0, 1], [3])]
    counts = count_languages(RunTables(store, (), {Stage.LANGUAGES: shards}, {}))
    assert list(counts.rows.items()) == [("de", 2), ("en", 1)]
    assert counts.others == {("claims", "en", "de"): 1}


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
