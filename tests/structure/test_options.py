"""Every option declares its facts, and what depends on a fact follows from the declaration."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any, Literal

import pytest
from pydantic import SecretStr, ValidationError, create_model

from deployments.registry.specs import as_parameter
from flows.config.loading import load_config
from flows.config.run_config import RunConfig
from metric_core.errors import ConfigError
from metric_core.stages import Stage
from tasks.engine.registry import STAGES
from tasks.options.evaluation_options import EvaluationOptions
from tasks.options.judge_server_options import ServerJudgeOptions
from tasks.options.judged_settings import JudgedSettings
from tasks.options.option import (
    Declaration,
    Holds,
    Option,
    OptionGroup,
    declarations,
    facts_of,
    implementation_fields,
    may_hold_secret,
    scoring_options,
)
from tasks.options.settings import Settings

OPTIONS = tuple(declarations(RunConfig))
SECRET = "hunter2-planted"
PLANTED = f"me:{SECRET}@host"
SECRETS = [each for each in OPTIONS if each.facts.may_hold_secret]
NEEDED: dict[tuple[str, ...], dict[str, Any]] = {
    ("anchor",): {"source": "a.jsonl"},
    ("retriever",): {"index": "m:a"},
    ("server",): {"urls": ["http://h"]},
    ("launch",): {"python": "p", "model": "m"},
    ("cascade",): {"first": "scripted"},
    ("routes",): {"kinds": ["source"], "webhook": "env:HOOK"},
}
"""Options that a table cannot do without, by the end of its place."""


def configuration(option: Declaration, value: Any) -> dict[str, Any]:
    """Return a configuration in which one option has a value."""
    content: Any = value
    for depth in range(len(option.place) - 1, -1, -1):
        table = option.place[:depth]
        content = NEEDED.get(table[-1:], {}) | {option.place[depth]: content}
        if table[-1:] in {("panel",), ("routes",)}:
            content = [content]
    assert isinstance(content, dict)
    return content


def test_there_are_options_in_tables_and_lists() -> None:
    assert {("limit",), ("judge", "server", "urls"), ("panel", "script"), ("deploy", "gate", "level")} <= {
        option.place for option in OPTIONS
    }


def test_an_option_whose_type_holds_text_says_what_it_is() -> None:
    for annotation in (str | None, tuple[str, ...], dict[str, int], Annotated[SecretStr, "note"], int | Any, Path):
        fields: dict[str, Any] = {"name": (Annotated[annotation, Option("Name.")], ...)}
        with pytest.raises(TypeError, match=r"_Group.name may hold text: say what it is"):
            create_model("_Group", __base__=OptionGroup, __cls_kwargs__={"affects_scores": False}, **fields)


def test_other_facts_follow_from_type_and_group() -> None:
    class _Inner(OptionGroup, affects_scores=False):
        key: Annotated[str, Option("Key.", holds="secret")]

    class _Group(OptionGroup, affects_scores=True):
        size: Annotated[int | None, Option("Size.")] = None
        side: Annotated[tuple[Literal["left"] | Stage, ...], Option("Side.", affects_scores=False)] = ()
        inner: Annotated[tuple[_Inner, ...], Option("Inner.")] = ()
        other: Annotated[_Inner | None, Option("Other.", holds="text")] = None

    found = {name: facts_of(field) for name, field in _Group.model_fields.items()}
    assert {name: (facts.holds, facts.affects_scores) for name, facts in found.items() if facts} == {
        "size": ("text", True),
        "side": ("text", False),
        "inner": ("secret", True),
        "other": ("text", True),
    }


def test_an_option_or_its_group_says_whether_it_affects_scores() -> None:
    with pytest.raises(TypeError, match=r"_Group.size does not say whether it affects scores"):

        class _Group(OptionGroup):
            size: Annotated[int, Option("Size.")] = 3


@pytest.mark.parametrize("holds", ["path", "command", "address", "secret"])
def test_a_run_sets_neither_a_path_nor_a_secret(holds: Holds) -> None:
    with pytest.raises(TypeError, match=r"a run of a deployment cannot set a path or a secret: _Group.name"):

        class _Group(OptionGroup, affects_scores=False):
            name: Annotated[str, Option("Name.", holds=holds, by_run=True)]


def test_a_group_with_a_field_that_is_not_declared_is_refused() -> None:
    with pytest.raises(TypeError, match=r"_Group.size is not declared: annotate it with Option\(...\)"):

        class _Group(OptionGroup):
            size: int = 3


def test_a_description_is_a_sentence() -> None:
    assert not [each.place for each in OPTIONS if not (each.field.description or "").endswith(".")]
    assert not [each.place for each in OPTIONS if each.table and "Args:" in (each.table.__doc__ or "")]


def test_an_option_has_one_description_wherever_it_is_declared() -> None:
    descriptions: dict[tuple[str, int], set[str | None]] = {}
    for option in OPTIONS:
        descriptions.setdefault((option.place[-1], id(option.facts)), set()).add(option.field.description)
    assert not [name for (name, _), found in descriptions.items() if len(found) > 1]


@pytest.mark.parametrize(
    "value", [PLANTED, [PLANTED], {"key": PLANTED}, {"key": [PLANTED]}, [{"key": PLANTED}]], ids=repr
)
def test_the_value_of_an_option_that_may_hold_a_secret_is_in_no_message(value: Any) -> None:
    messages = {}
    for option in SECRETS:
        try:
            load_config(None, configuration(option, value))
        except ConfigError as error:
            messages[option.place] = str(error)
    assert messages
    assert not [place for place, message in messages.items() if SECRET in message]


def test_a_table_hides_what_any_of_its_options_hides() -> None:
    tables = {option.place[:depth] for option in SECRETS for depth in range(1, len(option.place) + 1)}
    assert not [table for table in tables if not may_hold_secret(RunConfig, table)]


def test_value_of_any_other_option_is_in_the_message() -> None:
    with pytest.raises(ConfigError, match=r"limit: .*, got 'many'"):
        load_config(None, {"limit": "many"})


PATHS = [each for each in OPTIONS if each.facts.is_path and each.place != ("deploy", "gate")]


@pytest.mark.parametrize("option", PATHS, ids=lambda each: each.place)
def test_a_path_is_relative_to_its_file_and_whole_in_a_deployment(
    option: Declaration, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def value_in(content: Any) -> Any:
        for name in option.place:
            content = content[0] if isinstance(content, list) else content
            content = content[name]
        return content

    monkeypatch.chdir(tmp_path)
    file = tmp_path / "configured" / "assay.yaml"
    file.parent.mkdir()
    file.write_text(json.dumps(configuration(option, "planted/here")), encoding="utf-8")
    loaded = value_in(load_config(file).model_dump(mode="json"))
    assert loaded == ("planted/here" if option.in_list else str(file.parent / "planted" / "here"))
    here = RunConfig.model_validate(configuration(option, "planted/here"))
    assert value_in(as_parameter(here)) == str(tmp_path / "planted" / "here")
    for word in option.facts.words:
        file.write_text(json.dumps(configuration(option, word)), encoding="utf-8")
        assert value_in(load_config(file).model_dump(mode="json")) == word


def test_all_options_that_can_change_a_score_are_options_of_the_evaluation() -> None:
    assert scoring_options(RunConfig) == scoring_options(EvaluationOptions)


def test_no_option_that_cannot_change_a_score_is_part_of_a_fingerprint() -> None:
    harmless = {option.place[0] for option in OPTIONS if len(option.place) == 1 and not option.facts.affects_scores}
    assert harmless & JudgedSettings.model_fields.keys() <= implementation_fields(JudgedSettings)
    # extra_body is left out where it is empty, so that requests without it keep their keys
    determining = ServerJudgeOptions(urls=("http://h",), extra_body={"top_k": 5}).determining()
    assert determining.keys() == scoring_options(ServerJudgeOptions)


def settings_classes(base: type[Settings] = Settings) -> Iterator[type[Settings]]:
    """Yield all classes of settings that modules of stages define."""
    for found in base.__subclasses__():
        if found.__module__.startswith(("tasks.stages.", "tasks.reports.")):
            yield found
        yield from settings_classes(found)


def test_settings_of_stages_inherit_their_options() -> None:
    assert STAGES
    in_another_form = {"metrics", "retriever", "shard_rows"}  # complete there, optional in the configuration
    shared = RunConfig.model_fields.keys() - in_another_form
    copied = [
        f"{found.__name__}.{name}"
        for found in settings_classes()
        for name, field in found.model_fields.items()
        if name in shared and facts_of(field) is None
    ]
    assert copied == []


def test_a_value_that_does_not_fit_names_its_option() -> None:
    class _Group(OptionGroup, affects_scores=False):
        size: Annotated[int, Option("Size.", ge=1)] = 3

    with pytest.raises(ValidationError, match="size"):
        _Group(size=0)
    assert _Group.model_json_schema()["properties"]["size"]["description"] == "Size."
