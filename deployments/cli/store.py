"""`assay store`: show and check the table store and the answer cache."""

import json
from collections.abc import Iterator
from dataclasses import asdict
from typing import Annotated, Any

import typer

from deployments.cli._support.console import stdout
from deployments.cli._support.options import Json
from deployments.cli._support.print_document import print_table
from deployments.cli._support.sizes import format_size
from deployments.cli._support.verb import VerbGroup
from deployments.cli.prune import Cache, Tables
from metric_core.errors import ConfigError
from tasks.cache.maintenance import StepStatistics, statistics
from tasks.cache.maintenance import check as check_answers
from tasks.documents.blocks import Table, make_table
from tasks.opening.caches import open_cache
from tasks.rows.inventory import Entry, Inventory
from tasks.runtime.home import assay_home

app = VerbGroup()

Check = Annotated[bool, typer.Option("--check", help="Read and verify everything; exit code 6 if there is damage.")]

DAMAGED = 6
"""Exit code if a check found damage."""


@app.command()
def store(tables: Tables = None, cache: Cache = None, check: Check = False, as_json: Json = False) -> None:
    """Show or check the stored tables and cached answers."""
    root = tables or str(assay_home() / "tables")
    inventory, answer_cache = Inventory(root), open_cache(cache)
    entries = list(inventory.entries())
    content: dict[str, Any] = {
        "tables": {"path": root, "folders": list(_folders(entries))},
        "answers": {"path": answer_cache.database.name, "steps": []},
    }
    try:
        content["answers"]["steps"] = [_step(found) for found in statistics(answer_cache)]
    except ConfigError:
        if not check:  # a check reports the damage itself
            raise
    if check:
        problems = [problem for entry in entries if (problem := inventory.problem(entry)) is not None]
        content["tables"]["problems"] = problems
        content["answers"]["check"] = asdict(check_answers(answer_cache))
    if as_json:
        stdout.print_json(json.dumps(content))
    else:
        _show(content)
    if check and (content["tables"]["problems"] or _is_damaged(content["answers"]["check"])):
        raise typer.Exit(DAMAGED)


def _is_damaged(check: dict[str, Any]) -> bool:
    return bool(check["damaged"] or check["problems"])


def _folders(entries: list[Entry]) -> Iterator[dict[str, Any]]:
    for folder in dict.fromkeys(entry.folder for entry in entries):
        found = [entry for entry in entries if entry.folder == folder]
        used = [entry.used for entry in found]
        yield {
            "folder": folder,
            "count": len(found),
            "size": sum(entry.size for entry in found),
            "oldest": min(used).isoformat(timespec="seconds"),
            "newest": max(used).isoformat(timespec="seconds"),
        }


def _step(found: StepStatistics) -> dict[str, Any]:
    times = {name: getattr(found, name).isoformat(timespec="seconds") for name in ("oldest", "newest", "used")}
    return {"step": found.step, "count": found.count, "size": found.size, **times}


def _show(content: dict[str, Any]) -> None:
    tables, answers = content["tables"], content["answers"]
    stdout.print(f"stage tables: {tables['path']}", style="bold")
    print_table(stdout, _table("folder", tables["folders"]))
    stdout.print(f"answers: {answers['path']}", style="bold")
    print_table(stdout, _table("step", answers["steps"]))
    if "problems" not in tables:
        return
    for problem in (*tables["problems"], *answers["check"]["problems"]):
        stdout.print(f"damaged: {problem}", style="red")
    check = answers["check"]
    stdout.print(
        f"checked: {len(tables['problems'])} problems with tables; "
        f"{check['damaged']} of {check['count']} answers damaged"
    )
    if tables["problems"] or _is_damaged(check):
        stdout.print("damaged entries are not used; they are recomputed when they are needed")


def _table(name: str, rows: list[dict[str, Any]]) -> Table:
    shown = [
        (row[name], str(row["count"]), format_size(row["size"]), row["oldest"][:10], row["newest"][:10]) for row in rows
    ]
    return make_table((name, "count", "size", "oldest", "newest"), shown)
