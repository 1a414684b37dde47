"""Leaks in the summary of a run, on the terminal, in the report and among the gauges; functions that decide them."""

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from flows.config.run_config import RunConfig
from flows.evaluate import evaluate
from metric_core.errors import PluginError
from tasks.findings.finding import RunRecords
from tasks.findings.table import cautions_of, figures_of, lines_of
from tasks.leaks.leak_counts import MOST_DOCUMENTS, LeakCounts
from tasks.options.metric_settings import MetricSettings
from tasks.plugins.metric_lookup import parse_metric
from tasks.runs.finished_run import FinishedRun

pytestmark = [pytest.mark.prefect]

Run = Callable[..., RunRecords]
RULE = "tests.tasks.leaks.permission_rules"


@pytest.fixture
def run(tmp_path: Path, prefect_stub: object) -> Run:
    """Return a function that evaluates rows with two passages each."""
    del prefect_stub

    def evaluate_rows(rows: list[Mapping[str, Any]], *metrics: str) -> RunRecords:
        plain = {"user_input": "Why?", "response": "So.", "retrieved_contexts": ["first", "second"]}
        lines = (json.dumps({"id": f"row-{i}", **plain, **row}) for i, row in enumerate(rows))
        (tmp_path / "rows.jsonl").write_text("\n".join(lines), encoding="utf-8")
        chosen = metrics or ("leaked_passages",)
        done = evaluate(
            RunConfig.model_validate(
                {"source": str(tmp_path / "rows.jsonl"), "out": str(tmp_path / "run"), "metrics": chosen}
            )
        )
        finished = FinishedRun(Path(done.folder))
        return RunRecords(finished.record, finished.summary, finished.folder)

    return evaluate_rows


def row(*lists: list[str], asker: Any = "ann", **columns: Any) -> Mapping[str, Any]:
    return {"asker": asker, "acl": lists, **columns}


def test_leaks_are_counted_by_document_and_rows_without_permissions_by_reason(run: Run) -> None:
    seen = row(["ann"], ["*"], retrieved_context_ids=["a", "b"])
    both = row(["bob"], [], retrieved_context_ids=["a", "b"])
    twice = row(["bob"], ["bob"], retrieved_context_ids=["a", "a"])
    found = run([seen, both, twice, row(["ann"], []), {"asker": "ann"}, row(["ann"], ["ann"], asker="")])
    assert found.summary.find(LeakCounts) == LeakCounts(
        rows=4,
        leaking=3,
        passages=5,
        claiming=0,
        documents={"a": 3, "b": 1},
        more_documents=0,
        unnamed=1,
        unknown={"no acl": 1, "who asks is not a name or a list of names": 1},
    )
    (caution,) = cautions_of(found)
    assert (caution.title, caution.sentence) == (
        "Leaks",
        "3 of 4 rows retrieved 5 passages that the asker may not see.",
    )
    assert caution.reasons == ("Documents: a (3), b (1), 1 passage without an id.",)
    assert "permissions are not known of 2 rows: no acl (1), who asks is not a name or a list of names (1)" in [
        *lines_of(found, "lines")
    ]
    assert [figure.value for figure in figures_of(found) if figure.name == "leaking_rows"] == [3]
    page = (found.folder / "report.html").read_text(encoding="utf-8")
    assert page.count("3 of 4 rows retrieved 5 passages that the asker may not see.") == 1
    assert "retrieved for askers who may not see it" in page


def test_a_run_without_leaks_says_so_and_warns_of_nothing(run: Run) -> None:
    found = run([row(["ann"], ["ann"]), row(["ann"], ["*"])])
    assert "leaks: none in 2 rows" in [*lines_of(found, "lines")]
    assert [*cautions_of(found)] == []
    assert 'class="alarm"' not in (found.folder / "report.html").read_text(encoding="utf-8")


def test_a_run_that_does_not_ask_has_no_entry(run: Run) -> None:
    assert run([row([], [], reference="So.")], "string_similarity").summary.find(LeakCounts) is None


def test_no_more_than_some_documents_are_named(run: Run) -> None:
    rows = [row(["ann"], [], retrieved_context_ids=["x", f"doc-{i:02}"]) for i in range(MOST_DOCUMENTS + 2)]
    found = run(rows)
    counts = found.summary.find(LeakCounts)
    assert counts is not None
    assert (len(counts.documents), counts.more_documents) == (MOST_DOCUMENTS, 2)
    (caution,) = cautions_of(found)
    assert caution.reasons[0].endswith("doc-04 (1), 17 more.")


def test_responses_that_state_what_only_a_forbidden_passage_says_are_counted(run: Run) -> None:
    salary = "Salaries rise by four percent in May."
    texts = {"response": salary, "retrieved_contexts": ["The office opens at eight.", salary]}
    found = run([row(["ann"], ["hr"], **texts)], "leaked_passages", "leaked_claims(ask_each=true)")
    (caution,) = cautions_of(found)
    assert caution.reasons == (
        "Documents: 1 passage without an id.",
        "1 response states what only such a passage says.",
    )
    assert salary not in (caution.sentence, *caution.reasons)


def test_a_function_decides_and_its_code_is_part_of_the_settings(run: Run) -> None:
    named = f"leaked_passages(asker=tenant, allowed={RULE}:same_tenant)"
    rows = [
        {"tenant": "x", "retrieved_context_ids": ["x-1", "y-1"]},
        {"tenant": "y", "retrieved_context_ids": ["y-1", "y-2"]},
    ]
    found = run(rows, named)
    counts = found.summary.find(LeakCounts)
    assert counts is not None
    assert (counts.rows, counts.leaking, [*counts.documents]) == (2, 1, ["y-1"])
    codes = [MetricSettings.from_request(parse_metric(text)).code for text in (named, "leaked_passages")]
    assert codes[0] == found.record.metrics[0].code != ""
    assert codes[1] == ""


@pytest.mark.parametrize(
    ("name", "message"),
    [("no_such_module:rule", "no module"), (f"{RULE}:missing", "has no attribute"), (f"{RULE}:NUMBER", "a function")],
)
def test_a_function_that_cannot_be_used_is_refused_before_the_run(run: Run, name: str, message: str) -> None:
    with pytest.raises(PluginError, match=message):
        run([row([], [])], f"leaked_passages(allowed={name})")


def test_passages_that_are_objects_bring_their_lists(run: Run) -> None:
    passages = [
        {"page_content": "Rain.", "metadata": {"source": "a", "acl": ["ann"]}},
        {"page_content": "Pay.", "metadata": {"source": "b", "acl": ["hr"]}},
    ]
    half = [passages[0], {"page_content": "Pay.", "metadata": {"source": "b"}}]
    found = run([{"asker": "ann", "retrieved_contexts": each} for each in (passages, half)])
    counted = found.summary.find(LeakCounts)
    assert counted is not None
    assert counted.documents == {"b": 1}
    assert counted.unknown == {"who may see a passage is not a list of names": 1}
