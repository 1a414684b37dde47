"""The slices of a run in the history."""

import json
from pathlib import Path

from tasks.history.catalogue import Catalogue
from tests.run_records import distribution_json
from tests.tasks.history.run_folders import write_run


def test_the_metrics_of_slices_are_recorded(tmp_path: Path) -> None:
    folder = write_run(tmp_path / "run", 0)
    summary = json.loads((folder / "summary.json").read_text(encoding="utf-8"))
    (metric,) = summary["metrics"]
    german = metric | {"distribution": distribution_json(0.4, interval={"low": 0.3, "high": 0.5}), "scored": 5}
    column = {"slices": [{"value": "de", "rows": 6, "is_small": True, "metrics": [german]}]}
    summary["slices"] = [{"column": "language", "values": 1, "merged": 0} | column]
    (folder / "summary.json").write_text(json.dumps(summary), encoding="utf-8")
    run = Catalogue(str(tmp_path / "history.db")).record(folder)
    found = {(each.metric, each.slice_column, each.slice): (each.mean, each.scored) for each in run.metrics}
    assert found == {("faithfulness", "", ""): (0.8, 18), ("faithfulness", "language", "de"): (0.4, 5)}
