"""Stories of state that is gone, wrong or half known: a clock, a store, a judge, a source, ends and silences."""

import shutil
from pathlib import Path

from benchmarks.month.data_stories import ALARM, ERROR
from benchmarks.month.ledger import begins, ends
from benchmarks.month.month import Nights

GROWTH = ("source: growth", "cost: tokens")


def clock(nights: Nights) -> None:
    """The clock of the machine is ahead in the first night, and again in a later one."""
    world = nights.world
    nights.is_compared = False
    world.write(1)
    nights.call("the first night, by a clock that is 100 days ahead", ahead=100)
    world.write(2)
    nights.call("the clock is right", begins("clock"), fault=True)
    world.wrong = 0.9
    world.write(3)
    nights.call("the system is worse", begins(ALARM), code=10)


def store(nights: Nights) -> None:
    """The store of baselines is gone, and the system is bad."""
    world, folder = nights.world, nights.month.folder / f"baselines-{nights.name}"
    for night in (1, 2, 3):
        world.write(night)
        nights.call("a good night", fault=False)
    folder.rename(folder.with_name(f"lost-{nights.name}"))
    world.wrong = 0.9
    world.write(4)
    nights.call("the store of baselines is gone, and the system is bad", begins("baseline"), code=11)
    shutil.rmtree(folder, ignore_errors=True)
    folder.with_name(f"lost-{nights.name}").rename(folder)
    world.write(5)
    nights.call("the store is back", begins(ALARM), ends("baseline"), code=10)


def constant(nights: Nights) -> None:
    """The judge says yes to everything, and half of the responses are wrong."""
    world = nights.world
    nights.options["anchor"] = {"source": str(world.write_anchor())}
    for night in (1, 2, 3, 4):
        world.write(night)
        nights.call("a good night", fault=False)
    world.wrong, world.says_yes = 0.5, True
    world.write(5)
    nights.call("the judge says yes to everything, and half of the responses are wrong", begins(r"judge:.*"), code=11)


def growth(nights: Nights) -> None:
    """The source is 100 times as large for a night."""
    world = nights.world
    for night in (1, 2):
        world.write(night)
        nights.call("a night with 20 rows", fault=False)
    world.write(3, rows=2000)
    nights.call("a night with 2000 rows", begins(*GROWTH))
    world.write(4)
    nights.call("a night with 20 rows again", ends(*GROWTH), fault=False)


def lost_ends(nights: Nights) -> None:
    """Incidents begin while the history cannot be written, and one ends by hand."""
    world, history = nights.world, Path(nights.history)
    nights.is_compared = False
    world.write(1)
    nights.call("the first night", fault=False)
    kept = history.with_suffix(".kept")
    history.rename(kept)
    history.mkdir()
    world.write(2, rows=31)
    nights.call("31 of 60 rows, and no history", begins("source: rows", "history"), code=11)
    history.rmdir()
    kept.rename(history)
    world.write(3)
    nights.call("all rows, and the history is back", ends("source: rows", "history"), fault=False)
    world.source.unlink()
    nights.call("the source is missing", begins(ERROR), code=3)
    entry = nights.note("a person closes the incident", ends(ERROR), fault=False)
    nights.assay("alert", "close", nights.name, "--config", str(nights.month.folder / f"{nights.name}.yaml"))
    entry.state = "closed manually"


def silence(nights: Nights) -> None:
    """An incident begins in a silence and is over after it: nobody is called."""
    world = nights.world
    world.write(1)
    nights.call("the first night", fault=False)
    nights.assay("alert", "silence", nights.name, "--until", "4h", "--history", nights.history)
    world.source.unlink()
    nights.is_silenced = True
    nights.call("silenced: the source is missing", code=3)
    nights.assay("alert", "unsilence", nights.name, "--history", nights.history)
    world.write(3)
    nights.call("the silence is over, and the source back", fault=False)
    nights.is_silenced = False
    world.source.unlink()
    nights.call("the source is missing again", begins(ERROR), code=3)
