"""Profiles as data: the packaged ones are complete, and a file of a user is checked before it is used."""

import json
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from metric_core.errors import ConfigError
from tasks.options.judge_options import JudgeSettings
from tasks.options.load_profile import FOLDER, load_profile, profile_names
from tasks.options.profile import Profile
from tests.structure.house import ROOT
from tests.tasks.models.judges.verifiers.random_models import CLASSIFIER

MINE = """
name = "mine"
version = 3
model = "house/verifier"
source = "our wiki"
license = "internal"
languages = ["de"]
route = "classify"

[form]
kind = "text"
text = "{premise} // {claim}"

[reading]
kind = "classes"

[chunks]
window = 1024

[[canaries]]
premise = "Es regnet."
claim = "Es regnet."
supported = true

[[canaries]]
premise = "Es regnet."
claim = "Es schneit."
supported = false

[[canaries]]
premise = "Das Brot kostet drei Euro."
claim = "Das Brot kostet drei Euro."
supported = true

[[canaries]]
premise = "Das Brot kostet drei Euro."
claim = "Das Brot kostet vier Euro."
supported = false
"""


def test_the_packaged_profiles_are_those_of_the_documentation() -> None:
    told = (ROOT / "docs" / "judge.md").read_text(encoding="utf-8")

    assert len(profile_names()) == 10
    assert [name for name in profile_names() if f"`{name}`" not in told] == []


def test_a_packaged_profile_names_source_license_and_both_directions() -> None:
    for name in profile_names():
        profile = load_profile(name)

        assert profile.name == name, name
        assert profile.source.startswith("https://"), name
        assert profile.license, name
        assert bool(profile.memory_gb) == bool(profile.model), name
        assert len({canary.supported for canary in profile.canaries}) == 2, name
        claims = [canary.claim for canary in profile.canaries]
        assert len(set(claims)) < len(claims), "a claim with two premises shows a template that drops the premise"


def test_the_schema_of_the_documentation_is_current() -> None:
    written = (ROOT / "docs" / "profile.schema.json").read_text(encoding="utf-8")

    assert json.loads(written) == Profile.model_json_schema()


def test_a_file_of_a_user_is_a_profile(tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    path.write_text(MINE, encoding="utf-8")

    profile = load_profile(str(path))

    assert (profile.name, profile.version, profile.languages) == ("mine", 3, ("de",))
    assert len(profile.canaries) == 4


@pytest.mark.parametrize(
    ("old", "new", "problem"),
    [
        ("{premise} // {claim}", "{claim}", "the form must have {premise} once, found 0 times"),
        ("{premise} // {claim}", "{premise} {claim} {claim}", "the form must have {claim} once, found 2 times"),
        ('route = "classify"', "", "a profile needs route"),
        ('route = "classify"', 'route = "chat"', "the route chat needs a form of kind chat"),
        ('kind = "classes"', 'kind = "classes"\nsupported = 7', "supported must be one of the classes"),
        ('kind = "classes"', 'kind = "guesses"', "reading"),
        ("window = 1024", "window = 1024\nreserve = 1024", "must be smaller than chunks.window, of 1024"),
        ("supported = false", "supported = true", "canaries must have supported = true and supported = false"),
        ('license = "internal"', "", "license: Field required"),
        ('license = "internal"', 'license = "x"\nlicence = "y"', "licence: Extra inputs"),
        ("version = 3", "version = ", "is not TOML"),
    ],
)
def test_a_profile_that_cannot_work_is_refused(tmp_path: Path, old: str, new: str, problem: str) -> None:
    assert old in MINE
    path = tmp_path / "mine.toml"
    path.write_text(MINE.replace(old, new), encoding="utf-8")

    with pytest.raises(ConfigError) as error:
        load_profile(str(path))

    assert problem in str(error.value)
    assert str(path) in str(error.value)


def test_an_unknown_profile_is_told_with_those_that_there_are() -> None:
    with pytest.raises(ConfigError, match=r"wanted one of decision, factcg, .* or the path of a file"):
        load_profile("minicheck")
    with pytest.raises(ConfigError, match="cannot be read: No such file"):
        load_profile("nowhere/mine.toml")


def test_everything_that_may_change_an_answer_is_in_the_digest() -> None:
    profile = load_profile(CLASSIFIER)
    told = {"source": "s", "license": "l", "languages": (), "accuracy": "a", "memory_gb": 1.0, "note": "n"}
    counted: dict[str, Any] = {
        "version": 4,
        "model": "m",
        "threshold": 0.7,
        "above": False,
        "delimiters": ("x",),
        "form": profile.form.model_copy(update={"text": "{claim}{premise}"}),
        "reading": profile.reading.model_copy(update={"supported": 0}),
        "chunks": profile.chunks.model_copy(update={"overlap": 0.25}),
        "in_process": None,
    }

    assert profile.model_copy(update=told).digest() == profile.digest()
    digests = {profile.model_copy(update={name: value}).digest() for name, value in counted.items()}
    assert len(digests - {profile.digest()}) == len(counted)


def test_words_name_profiles() -> None:
    here = JudgeSettings.model_validate({"backend": "verifier", "profile": "factcg"})
    assert here.profile == "factcg"
    assert {path.suffix for path in FOLDER.iterdir()} == {".toml"}


def test_a_launched_server_gets_the_flags_of_its_profile() -> None:
    for name in [name for name in profile_names() if load_profile(name).route and load_profile(name).model]:
        profile = load_profile(name)

        launch = JudgeSettings.model_validate({"profile": name, "launch": {"python": "python3"}}).launch

        assert launch is not None, name
        assert launch.model == profile.model, name
        assert launch.dtype == profile.serving.dtype, name
        assert launch.max_model_len == profile.serving.max_model_len, name
        assert launch.extra_args == profile.serving.extra_args, name


def test_a_profile_for_several_models_is_launched_with_a_model_of_the_user() -> None:
    with pytest.raises(ValidationError, match="model"):
        JudgeSettings.model_validate({"profile": "decision", "launch": {"python": "python3"}})
    given = {"python": "python3", "model": "Qwen/Qwen3-8B"}
    launch = JudgeSettings.model_validate({"profile": "decision", "launch": given}).launch
    assert launch is not None
    assert launch.model == "Qwen/Qwen3-8B"


def test_configured_flags_win_over_those_of_a_profile() -> None:
    given = {"python": "python3", "model": "copy/of-it", "max_model_len": 4096, "extra_args": ["--enforce-eager"]}

    launch = JudgeSettings.model_validate({"profile": "minicheck-7b", "launch": given}).launch

    assert launch is not None
    assert (launch.model, launch.max_model_len, launch.extra_args) == ("copy/of-it", 4096, ("--enforce-eager",))
    with pytest.raises(ValidationError, match="model"):
        JudgeSettings.model_validate({"launch": {"python": "python3"}})


def test_a_byte_order_mark_is_no_part_of_a_profile(tmp_path: Path) -> None:
    path = tmp_path / "own.toml"
    path.write_text("\ufeff" + (FOLDER / "factcg.toml").read_text(encoding="utf-8"), encoding="utf-8")
    assert load_profile(str(path)) == load_profile("factcg")
