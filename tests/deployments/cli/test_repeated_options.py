"""An option that is given twice adds up or is refused, whichever verb has it."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, get_args, get_origin

import pytest
import typer

from deployments.cli._support.verb import Verb
from deployments.cli._support.verb_table import ListedVerb, Verbs
from deployments.cli.deploy import _variables
from deployments.cli.main import app
from flows.config.run_config import RunConfig
from metric_core.errors import ConfigError
from tasks.options.option import declarations
from tests.deployments.cli.conftest import Outcome
from tests.deployments.cli.test_options import SOURCE, parse

ADDS_UP = {
    *("--from", "--metrics", "--column-map", "--refresh", "--missing-texts", "--job-variable", "--extra-args"),
    *(
        "--slice",
        "--rebuild",
        "--forget",
        "--where",
        "--host-name",
        "--kinds",
        "--import",
        "--against",
        "--max",
        "--sink",
    ),
}
TABLES = {"--container"}
"""Flags of lists that stand for one thing: words of a command."""


def verbs(command: Any, path: str = "assay") -> Iterator[tuple[str, Any]]:
    """Yield all verbs below a command."""
    command = command.load() if isinstance(command, ListedVerb) else command
    if isinstance(command, Verbs):
        command.add_installed()
    if not hasattr(command, "commands"):
        yield path, command
    for name, verb in getattr(command, "commands", {}).items():
        yield from verbs(verb, f"{path} {name}")


VERBS = dict(verbs(typer.main.get_command(app)))


def test_there_are_verbs_of_all_groups() -> None:
    assert {"assay run", "assay judge start", "assay server stop", "assay event index-rebuilt"} <= set(VERBS)
    assert all(isinstance(verb, Verb) for verb in VERBS.values())


def test_an_option_given_twice_adds_up_or_is_refused() -> None:
    for path, verb in VERBS.items():
        for option in verb.params:
            if option.param_type_name != "option":
                continue
            long = next(flag for flag in option.opts if flag.startswith("--"))
            if option.is_flag:
                arguments = [long, *(option.secondary_opts or [long])]
                expected = bool(option.secondary_opts)
            else:
                arguments = [long, "1", option.opts[-1], "2"]
                expected = long not in ADDS_UP
            refused = ""
            try:
                verb.make_context("verb", arguments)
            except Exception as error:  # noqa: BLE001 typer brings its own click, whose errors have no public name
                refused = str(getattr(error, "message", error))
            assert (f"{long} is given 2 times, and has one value" in refused) is expected, (path, refused)


def _is_collection(annotation: Any) -> bool:
    return get_origin(annotation) in (tuple, dict) or any(map(_is_collection, get_args(annotation)))


def test_a_flag_of_a_list_or_table_adds_up() -> None:
    flags = [(each.facts.flag, each.field.annotation) for each in declarations(RunConfig) if each.facts.flag]
    assert flags
    adding = {flag.long for flag, _ in flags if flag.repeats}
    assert adding == {flag.long for flag, kind in flags if _is_collection(kind) and flag.long not in TABLES}


def test_values_of_a_repeated_option_add_up() -> None:
    config, _ = parse(
        *(SOURCE, "--column-map", "gold=reference", "--column-map", '{"out": "response"}'),
        *("-m", "faithfulness, context_recall", "--metrics", '["answer_relevancy"]'),
        *("--refresh", "claims", "--refresh", "verdicts,ratings"),
    )
    assert config.column_map == {"gold": "reference", "out": "response"}
    assert config.metrics == ("faithfulness", "context_recall", "answer_relevancy")
    assert config.refresh == ("claims", "verdicts", "ratings")


def test_the_variable_of_a_repeated_option_is_read_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ASSAY_METRICS", "aspect_critic(definition=Is it rude, or not?), faithfulness")
    assert parse(SOURCE)[0].metrics == ("aspect_critic(definition=Is it rude, or not?)", "faithfulness")
    assert parse(SOURCE, "-m", "context_recall")[0].metrics == ("context_recall",)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--column-map", "gold=reference", "--column-map", "gold=response"), "'gold' is given twice, as 'reference'"),
        (("--column-map", "gold=reference,gold=response"), "'gold' is given twice"),
        (("--column-map", '{"gold": "reference", "gold": "response"}'), "the key 'gold' is given twice"),
        (("--column-map", "gold=reference", "--column-map", "best=reference"), "column_map names 'reference' for two"),
        (("-m", "faithfulness", "-m", "faithfulness"), "the metric 'faithfulness' is asked for twice"),
        (("-m", "aspect_critic(definition=so :) it)"), "quote texts with single parentheses"),
    ],
)
def test_values_that_contradict_each_other_are_refused(
    assay: Callable[..., Outcome], arguments: tuple[str, ...], message: str
) -> None:
    refused = assay("plan", SOURCE, *arguments)
    assert (refused.code, refused.out) == (2, "")
    assert message in refused.err


def test_a_column_map_names_both_columns_of_the_score(assay: Callable[..., Outcome], tmp_path: Path) -> None:
    rows = tmp_path / "rows.jsonl"
    rows.write_text('{"q": "Where?", "out": "In Rome.", "gold": "In Rome."}\n')
    options = ("-m", "answer_similarity", "--column-map", "gold=reference", "--column-map", "out=response")
    assert assay("plan", str(rows), *options).code == 0


def test_a_job_variable_is_given_once() -> None:
    assert _variables(['env={"A": "b"}', "image=x"]) == {"env": {"A": "b"}, "image": "x"}
    with pytest.raises(ConfigError, match="the job variable image is given twice"):
        _variables(["image=x", "image=y"])
    with pytest.raises(ConfigError, match="the key 'A' is given twice"):
        _variables(['env={"A": "b", "A": "c"}'])
