"""Stories of faults of the system, its data, the judge and the gate, night after night."""

import shutil
from datetime import timedelta
from pathlib import Path
from typing import Any

from benchmarks.month.ledger import begins, ends
from benchmarks.month.month import Nights
from tests.tasks.models.judges.openai.fake_server import Fault

ERROR = r"error:.*"
ALARM = r"alarm:faithfulness"
LEFT_OUT = "retrieved_contexts"


def quality(nights: Nights) -> None:
    """The system gets worse, and worse again; the judge changes with and without another name."""
    world = nights.world
    nights.options["anchor"] = {"source": str(world.write_anchor())}
    start(nights)
    world.wrong = 0.35
    nights.night("the system is worse", begins(ALARM), fault=True, state="Worse")
    nights.night("it stays worse", fault=True, state="Worse")
    world.wrong = 0.85
    nights.night("a second drop", begins(rf"{ALARM}.+"), fault=True, state="Worse")
    world.wrong = 0.05
    nights.night("it is repaired", state="Recovering")
    nights.night("it stays repaired", ends(ALARM, rf"{ALARM}.+"), state="Passed")
    nights.server.models = ["judge-70b"]
    nights.night("the judge has another name", begins("comparison"), fault=True, state="Inconclusive")
    nights.night("it keeps it", state="Inconclusive")
    nights.server.models = ["judge-8b"]
    nights.night("the judge has its old name", ends("comparison"), state="Passed")
    world.strict = 0.5
    nights.night("another judge behind the old name", begins(r"judge.*", ALARM), fault=True)
    world.strict = 0.05
    nights.night("the judge is the old one again")


def source(nights: Nights) -> None:
    """The source is missing, empty, broken, cut, thinned and stale."""
    world = nights.world
    start(nights)
    world.source.unlink()
    nights.night("the source is missing", begins(ERROR), fault=True, write=False, state="Error")
    nights.night("the source is still missing", fault=True, write=False, state="Error")
    world.source.write_text("", encoding="utf-8")
    nights.night("the source is empty", begins(ERROR), fault=True, write=False, state="Error")
    world.write(nights.number + 1)
    world.source.write_text(world.source.read_text(encoding="utf-8") + "{broken\n", encoding="utf-8")
    nights.night("a broken line", begins(ERROR), fault=True, write=False, state="Error")
    world.write(nights.number + 1, change=lambda row: {k: v for k, v in row.items() if k != LEFT_OUT})
    nights.night("a column is missing", begins(ERROR), fault=True, write=False, state="Error")
    nights.night("the source is whole again", ends(ERROR), state="Passed")
    world.write(nights.number + 1, rows=31)
    nights.night("31 of 60 rows", begins("source: rows"), fault=True, write=False)
    world.write(nights.number + 1, rows=9)
    nights.night("9 of 60 rows", begins("source: most rows"), fault=True, write=False)
    nights.night("all rows again", ends("source: rows", "source: most rows"), state="Passed")
    world.write(nights.number + 1, change=lambda row: row | ({"reference": None} if row["id"] > "r3" else {}))
    nights.night("half of the references are null", begins("comparison"), fault=True, write=False)
    world.write(nights.number + 1, change=lambda row: {k: v for k, v in row.items() if k != "reference"})
    nights.night("there are no references", fault=True, write=False)
    nights.night("all references again", ends("comparison"), state="Passed")
    world.write(nights.number + 1, change=lambda row: row | {"id": f"new-{row['id']}"})
    nights.night("all rows have other ids", begins("comparison"), fault=True, write=False)
    nights.night("the ids are back", ends("comparison"), state="Passed")


def stale(nights: Nights) -> None:
    """The job that writes the responses hangs."""
    nights.deploy_options["stale_days"] = round(2.5 * nights.month.interval / (24 * 60), 5)
    start(nights)
    nights.night("the same responses", fault=True, write=False, state="Passed")
    nights.night("the same responses again", fault=True, write=False)
    nights.night("the same responses for long", begins("source: unchanged"), fault=True, write=False)
    nights.night("still the same responses", fault=True, write=False)
    nights.night("new responses", ends("source: unchanged"), state="Passed")


def judge(nights: Nights) -> None:
    """The judge is down, replies with errors, with nonsense, with half of the answers."""
    world = nights.world
    start(nights)
    nights.server.stop()
    nights.night("the judge is down", begins(ERROR), fault=True, state="Error")
    nights.night("the judge is still down", fault=True, state="Error")
    nights.server.start()
    world.fault = lambda: Fault(status=500)
    nights.night("the judge replies with status 500", begins(ERROR), fault=True, state="Error")
    world.fault = lambda: None
    nights.night("the judge works again", ends(ERROR), state="Passed")
    nights.server.models = []
    nights.night("the server has no model", begins(ERROR), fault=True, state="Error")
    nights.server.models = ["judge-8b"]
    nights.night("the model is back", ends(ERROR), state="Passed")
    world.fault = lambda: {"content": "I would rather not say."}
    nights.night("the judge answers nonsense", begins(ERROR), fault=True, state="Error")
    world.fault = lambda: None
    nights.night("the judge answers", ends(ERROR), state="Passed")
    world.fault = lambda: Fault(status=401)
    nights.night("the judge refuses the key", begins(ERROR), fault=True, state="Error")
    world.fault = lambda: None
    nights.night("the key is accepted", ends(ERROR), state="Passed")
    world.fault = lambda: Fault(hang_up=True)
    nights.night("the judge hangs up", begins(ERROR), fault=True, state="Error")
    world.fault = lambda: None
    nights.night("the judge replies", ends(ERROR), state="Passed")


def gate(nights: Nights) -> None:
    """A rule is violated, cannot be decided, is edited; what a night needs beside the scores is gone."""
    world = nights.world
    rules: dict[str, Any] = {"absolute": ["faithfulness.mean >= 0.7"]}
    nights.deploy_options |= {"gate": rules}
    nights.options["metrics_file"] = str(nights.month.folder / "metrics" / "gate.prom")
    start(nights)
    world.wrong = 0.9
    nights.night("a rule is violated", begins(r"gate:failed:.*", ALARM), fault=True, state="Gate failed")
    edited = {"gate": {"absolute": ["faithfulness.mean >= 0.6"]}}
    what = "the rule is edited, and violated"
    nights.night(what, begins(r"gate:failed:.*0\.6"), fault=True, state="Gate failed", deploy=edited)
    world.wrong = 0.05
    nights.night("the rule holds", ends(r"gate:failed:.*"))
    nights.night("it still holds", ends(ALARM), state="Passed")
    baseline = _folders(nights)[0]
    moved = baseline.with_name("moved")
    baseline.rename(moved)
    nights.night("the run folder of the baseline is gone", begins("comparison"), fault=True)
    moved.rename(baseline)
    nights.night("it is back", ends("comparison"), state="Passed")
    history = Path(nights.history)
    shutil.copy(history, history.with_suffix(".kept"))
    for each in history.parent.glob(f"{history.name}-*"):
        each.unlink()
    history.write_bytes(b"not a database" * 1000)
    nights.night("the history is damaged", begins(r"history"), fault=True)
    shutil.copy(history.with_suffix(".kept"), history)
    nights.assay("history", "--rebuild", str(_folders(nights)[-1]), "--history", nights.history)
    nights.night("the history is restored", state="Passed")
    page = Path(nights.config()["history_page"])
    page.unlink(missing_ok=True)
    page.mkdir()
    nights.night("the page of the history cannot be written", fault=True, state="Passed")
    page.rmdir()
    store = nights.month.folder / f"baselines-{nights.name}"
    store.rename(store.with_name("elsewhere"))
    store.write_text("a file", encoding="utf-8")
    nights.night("the store of baselines is a file", begins(ERROR), fault=True, state="Error")
    store.unlink()
    store.with_name("elsewhere").rename(store)
    nights.night("the store is back", ends(ERROR), state="Passed")


def calm(nights: Nights) -> None:
    """Nothing goes wrong, for as long as the other stories take."""
    start(nights)
    while not nights.month.is_over.wait(timedelta(seconds=1).total_seconds()):
        nights.night()


def start(nights: Nights, quiet: int = 1) -> None:
    """Deploy an evaluation, and let its first nights pass."""
    nights.world.write(1)
    nights.deploy()
    nights.night("the first night", state="Accepted")
    for _ in range(quiet):
        nights.night(state="Passed")


def _folders(nights: Nights) -> list[Path]:
    """Return the run folders of the nights, in order."""
    files = [
        each for each in nights.month.folder.glob("runs/*/run.json") if f'"{nights.name}"' in each.read_text("utf-8")
    ]
    return [each.parent for each in sorted(files, key=lambda path: path.stat().st_mtime)]
