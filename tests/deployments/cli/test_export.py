"""`assay export`: files, figures and an OTLP endpoint."""

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.deployments.cli.conftest import Outcome
from tests.tasks.compared import write_run
from tests.tasks.reports.exports.otlp_receiver import OtlpReceiver
from tests.tasks.reports.exports.test_qrels_table import GRADES, SAMPLES
from tests.tasks.reports.exports.test_qrels_table import write_run as write_judged_run

Assay = Callable[..., Outcome]


@pytest.fixture
def run(tmp_path: Path) -> str:
    return str(write_run(tmp_path / "run", 0.5, bad_row_count=0, seconds=1.0, failures=[], stages={}))


@pytest.mark.parametrize(("sink", "said"), [("otlp", "sent 80 scores"), ("openinference", "sent 0 scores")])
def test_scores_are_sent_and_counted(assay: Assay, run: str, sink: str, said: str) -> None:
    with OtlpReceiver() as receiver:
        done = assay("export", run, "--sink", f"{sink}={receiver.url}")
    assert done.code == 0
    assert said in done.err
    assert "rows whose trace is not known: 40" in done.err
    assert len(receiver.logs) == (80 if sink == "otlp" else 0)


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (("--sink", "otlp=http://me:pw@host"), "must hold no user and no password"),
        (("--sink", "otlp=http://host?key=pw"), "OTEL_EXPORTER_OTLP_HEADERS"),
        (("--sink", "spans=http://127.0.0.1:9"), "results cannot be sent to 'spans', but to"),
        (("--sink", "http://127.0.0.1:9"), "expected name=address"),
        (("--shape", "langfuse"), "no scored row has a trace"),
        (("--shape", "qrels"), "the run has no relevance judgments"),
        (("--format", "trec"), "write --shape qrels, got 'long'"),
    ],
)
def test_what_cannot_be_exported_is_said(assay: Assay, run: str, arguments: tuple[str, ...], problem: str) -> None:
    done = assay("export", run, *arguments)
    assert done.code == 2
    assert problem in " ".join(done.err.split())
    assert "pw" not in done.err


@pytest.mark.parametrize(
    ("arguments", "beginning"),
    [
        (("--shape", "qrels"), "q1 0 b 1\n"),
        (("--shape", "qrels", "--format", "csv"), '"query_id","passage_id","grade","source","text"'),
        (("--shape", "qrels", "--out", "qrels.txt"), "q1 0 b 1\n"),
        (("--shape", "qrels", "--out", "qrels.jsonl"), '{"query_id": "q1", "passage_id": "b", "grade": 1.0'),
    ],
)
def test_judgments_are_written_as_qrels(
    assay: Assay, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arguments: tuple[str, ...], beginning: str
) -> None:
    monkeypatch.chdir(tmp_path)
    done = assay("export", str(write_judged_run(tmp_path / "run", SAMPLES, GRADES)), *arguments)
    assert done.code == 0
    written = Path(arguments[-1]).read_text(encoding="utf-8") if "--out" in arguments else done.out
    assert written.startswith(beginning)


@pytest.mark.parametrize("named", [True, False])
def test_the_figures_are_written_for_prometheus(assay: Assay, run: str, tmp_path: Path, named: bool) -> None:
    target = tmp_path / "assay.prom"
    done = assay("export", run, *(("--out", str(target)) if named else ("--format", "prometheus")))
    assert done.code == 0
    figures = target.read_text(encoding="utf-8") if named else done.out
    assert 'assay_mean{deployment="",index="",metric="faithfulness"} 0.54' in figures
