"""`assay keep` puts rows of a run into a test set, and says what became of those that were there."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from flows.config.run_config import RunConfig
from flows.evaluate import run_evaluation
from tests.deployments.cli.conftest import Outcome

pytestmark = [pytest.mark.models, pytest.mark.prefect, pytest.mark.usefixtures("prefect_stub")]

Assay = Callable[..., Outcome]
OPENS = "Hall {} repairs bikes and trailers. It opens at nine on all days but Sunday."


def evaluate(folder: Path, name: str, opens: str) -> str:
    """Evaluate answers that say when two halls open, and return the run folder."""
    rows = [
        {
            "id": f"r{hall}",
            "user_input": f"When does hall {hall} open?",
            "response": f"Hall {hall} opens at {time} on all days but Sunday.",
            "retrieved_contexts": [OPENS.format(hall)],
        }
        for hall, time in ((1, opens), (2, "nine"))
    ]
    source = folder / f"{name}.jsonl"
    source.write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    options = {"source": str(source), "metrics": ["faithfulness"], "tables": str(folder / "tables")}
    return run_evaluation(RunConfig.model_validate({**options, "out": str(folder / name)})).folder


def test_rows_are_kept_until_they_graduate(assay: Assay, tmp_path: Path) -> None:
    kept, chunks = str(tmp_path / "set.jsonl"), tmp_path / "chunks.jsonl"
    lines = [json.dumps({"text": OPENS.format(hall)}) for hall in (1, 2)]
    chunks.write_text("\n".join(lines), encoding="utf-8")
    wrong = evaluate(tmp_path, "wrong", "ten")
    done = assay("keep", wrong, "--where", "faithfulness < 0.5", "--to", kept, "--chunks", str(chunks))
    assert done.code == 0, done.err
    assert "new, failing: When does hall 1 open? (faithfulness 0.03)" in done.out
    chunks.write_text("\n".join([*lines, json.dumps({"text": "It is in Delft."})]), encoding="utf-8")
    right = evaluate(tmp_path, "right", "nine")
    done = assay("keep", right, "--to", kept, "--chunks", str(chunks), "--graduates-after", "1", "--json")
    told = json.loads(done.out)
    assert told["states"] == {"failing": 0, "improving": 0, "graduated": 1, "retired": 0}
    assert [(each["from"], each["to"]) for each in told["changes"]] == [("failing", "graduated")]
    assert "no row graduates or retires" in assay("keep", right, "--to", kept).err


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--where", "faithfulnes < 0.5"), "the run has no 'faithfulnes'"),
        (("--where", "contradcted"), "or a limit such as 'faithfulness < 0.5': contradicted"),
        (("--where", "answered"), "the run has no 'answered'"),
        (("--most", "0"), "--most"),
    ],
)
def test_mistakes_are_named(assay: Assay, tmp_path: Path, options: tuple[str, ...], message: str) -> None:
    done = assay("keep", evaluate(tmp_path, "run", "ten"), "--to", str(tmp_path / "set.jsonl"), *options)
    assert (done.code, message in " ".join(done.err.split())) == (2, True), done.err
    assert not (tmp_path / "set.jsonl").exists()
