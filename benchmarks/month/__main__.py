"""Play a month of nights with scripted faults, and count what people are told.

    python -m benchmarks.month --out FOLDER

It needs the extra `test`; docs/design/month.md says what it shows.

Seventeen evaluations run on one real Prefect server with two workers, at an interval of `--minutes`. Each has a story
of faults: the system gets worse, sources are cut, judges change, runs and workers are killed, recipients are away,
events are malformed, clocks, stores and histories are wrong or gone. Alerts are received by a real HTTP server and a
real SMTP server on the loopback interface. At the end every message is matched with what the stories expected: silent,
lost, doubled, false. The figures on the pages of the histories, the heartbeats and the escalations are compared with
what the script saw itself.

An interval of two minutes or more is long beside a run, as a day is; `--minutes 1` shows what is left when it is not.
A story whose scheduled runs took more than half of their interval, as on a busy machine, is marked as void.
The folder gets `table.md`, `messages.json`, and the pages of the histories with pictures where a Chromium is found.
The database of the Prefect server is in PostgreSQL if there is one with the extension that Prefect needs.
"""

import argparse
import json
import os
import signal
import sys
import traceback
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from contextvars import copy_context
from dataclasses import asdict
from datetime import datetime, timedelta
from importlib.util import find_spec
from pathlib import Path
from threading import Thread
from typing import Any

from benchmarks.month import data_stories, lost_state_stories, machine_stories
from benchmarks.month.ledger import Account, settle
from benchmarks.month.month import POOL, Month, Nights, Worker, find_void
from benchmarks.month.receivers import Hooks, Message, read_mails
from benchmarks.month.record import check_beats, check_escalations, compare_page, incidents_of, read_page
from benchmarks.month.table import write_table
from benchmarks.month.world import World
from deployments.local_server import ServerAddress, use_server
from tests.browser.chromium import find_chromium
from tests.postgres import prefect_database, programs_for_prefect, start_postgres
from tests.prefect_servers import prefect_server
from tests.smtp_receiver import SmtpReceiver
from tests.tasks.models.judges.openai.fake_server import FakeServer

OWN_POOL = "killed-nights"
STORIES: dict[str, Callable[[Nights], None]] = {
    "quality": data_stories.quality,
    "source": data_stories.source,
    "stale": data_stories.stale,
    "judge": data_stories.judge,
    "gate": data_stories.gate,
    "byhand": machine_stories.by_hand,
    "recipients": machine_stories.recipients,
    "index": machine_stories.index,
    "paused": machine_stories.pause,
    "clock": lost_state_stories.clock,
    "store": lost_state_stories.store,
    "constant": lost_state_stories.constant,
    "growth": lost_state_stories.growth,
    "ends": lost_state_stories.lost_ends,
    "silence": lost_state_stories.silence,
}
ROWS = {"quality": 200, "growth": 20}


def main() -> None:
    """Play a month, and print the table of faults."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, required=True, help="folder of everything; must not exist")
    parser.add_argument("--minutes", type=int, default=2, help="minutes between two nights")
    parser.add_argument("--only", nargs="*", help="names of the stories to play; default all")
    options = parser.parse_args()
    folder = options.out.absolute()
    folder.mkdir(parents=True)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    with (
        _database() as database,
        prefect_server(folder / "prefect", database) as url,
        use_server(ServerAddress(url)),
        Hooks() as hooks,
        SmtpReceiver() as mailbox,
        ExitStack() as stack,
    ):
        month = Month(folder, url, options.minutes, hooks, mailbox)
        try:
            _play(month, options.only or [*STORIES, "process", "calm"], stack)
        finally:
            _write(month)


def _play(month: Month, names: list[str], stack: ExitStack) -> None:
    """Play the stories, each in a thread, until all have ended."""
    told = [name for name in names if name not in ("process", "calm")]
    environment: dict[str, str] = {}
    for name in names:
        environment |= month.environment(name)
    workers = {pool: Worker(month, pool, environment) for pool in (POOL, OWN_POOL)}
    for each in workers.values():
        each.start()
        stack.callback(each.stop)
    threads = []
    for place, name in enumerate([*told, *(name for name in names if name not in told)]):
        world = World(month.folder / name, ROWS.get(name, 60))
        server = stack.enter_context(FakeServer(say=world.judge, models=["judge-8b"]))
        pool = OWN_POOL if name == "process" else POOL
        nights = Nights(month, name, world, server, pool, place % month.interval)
        month.evaluations.append(nights)
        story = STORIES.get(name)
        if name == "process":
            threads.append(_thread(nights, lambda nights: machine_stories.process(nights, workers[OWN_POOL])))
        elif story is None:
            calm = _thread(nights, data_stories.calm)
        else:
            threads.append(_thread(nights, story))
    for thread in threads:
        thread.join()
    month.is_over.set()
    if "calm" in names:
        calm.join()


def _thread(nights: Nights, play: Callable[[Nights], None]) -> Thread:
    def work() -> None:
        try:
            play(nights)
            nights.stop()
        except Exception:  # noqa: BLE001 the other stories go on; the table shows what this one lacks
            print(f"the story {nights.name} broke off", flush=True)
            traceback.print_exc()

    thread = Thread(target=copy_context().run, args=(work,), name=nights.name, daemon=True)
    thread.start()
    return thread


def _write(month: Month) -> None:
    """Write the messages, the table of faults, and the pages of the histories."""
    messages = [*month.hooks.messages, *read_mails(month.mailbox)]
    content = json.dumps([asdict(each) for each in messages], indent=1, default=datetime.isoformat)
    (month.folder / "messages.json").write_text(content, encoding="utf-8")
    total = Account()
    for nights in month.evaluations:
        own = [entry for entry in month.entries if entry.evaluation == nights.name]
        told = [each for each in messages if each.evaluation == nights.name]
        told = [each for each in told if nights.over is None or each.time <= nights.over + timedelta(seconds=5)]
        total.add(settle(own, told, ("HTTP", "SMTP")))
    void = [*find_void(month.evaluations, timedelta(minutes=month.interval))]
    table = write_table(month.entries, total, month.interval, [*_deviations(month, messages)], void)
    (month.folder / "table.md").write_text(table, encoding="utf-8")
    print(table)
    for page in sorted(month.folder.glob("page-*.html")):
        if page.is_file():
            _take_picture(page)


def _deviations(month: Month, messages: list[Message]) -> Iterator[str]:
    """Yield in what the pages, the heartbeats and the escalations differ from what the script saw."""
    for nights in month.evaluations:
        name, runs = nights.name, nights.record()
        own = [entry for entry in month.entries if entry.evaluation == name]
        told = [each for each in messages if each.evaluation == name]
        if not nights.is_compared:
            continue
        page = Path(nights.config()["history_page"])
        found = compare_page(
            read_page(page.read_text(encoding="utf-8")),
            runs,
            incidents_of([each for each in told if each.by == "HTTP"], own),
        )
        found += check_beats(runs, month.hooks.beats[name])
        found += check_escalations(own, told) if "escalation" in nights.config()["deploy"]["alerts"] else ()
        yield from (f"{name}: {each}" for each in found)


def _take_picture(page: Path) -> None:
    chromium = find_chromium()
    if chromium is None or find_spec("playwright") is None:
        return
    from playwright.sync_api import sync_playwright  # noqa: PLC0415 an extra

    with sync_playwright() as playwright:
        options: dict[str, Any] = {"executable_path": str(chromium.program), "args": ["--no-sandbox", "--disable-gpu"]}
        browser = playwright.chromium.launch(**options, env={**os.environ, **chromium.environment})
        shown = browser.new_page(viewport={"width": 1280, "height": 900})
        shown.goto(page.absolute().as_uri())
        shown.screenshot(path=page.with_suffix(".png"), full_page=True)
        browser.close()


@contextmanager
def _database() -> Iterator[str | None]:
    programs = programs_for_prefect()
    if programs is None:
        yield None
        return
    with start_postgres(programs) as server:
        yield prefect_database(server.folder)


if __name__ == "__main__":
    main()
