"""Launch settings: refused values, equality, and variables whose values are never shown."""

import pytest
from pydantic import ValidationError

from tasks.options.launch_options import LaunchSettings

CONTAINER = ("docker", "run", "--gpus", "all", "image")


@pytest.mark.parametrize(
    ("values", "problem"),
    [
        ({"python": "python3", "container": CONTAINER}, "got both"),
        ({"container": ("docker", "image")}, "docker run IMAGE"),
        ({"container": ("docker", "run")}, "docker run IMAGE"),
        ({"container": ("docker", "run", "--name=judge", "image")}, "neither --name nor --detach"),
        ({"container": ("docker", "run", "-d", "image")}, "neither --name nor --detach"),
        ({"container": CONTAINER, "entry": "other"}, "entry is for python only"),
        ({"python": "python3", "extra_args": ["--port=1"]}, "set the field port instead"),
        ({"python": "python3", "extra_args": ["-tp", "2"]}, "set the field tensor_parallel_size instead"),
        (
            {"model": "tiny.gguf", "dtype": "half"},
            "dtype is set, and llama.cpp, which serves tiny",
        ),
        ({"model": "tiny.gguf", "container": CONTAINER}, "container is set, and llama.cpp"),
        ({"python": "python3", "extra_args": ["--max_model_len", "1"]}, "set the field max_model_len instead"),
        ({"python": "python3", "environment": {"A B": "1"}}, "should match pattern"),
        ({"python": "python3", "gpu_memory_utilization": 90}, "less than or equal to 1"),
        ({"python": "python3", "heat": "x"}, "Extra inputs"),
    ],
)
def test_invalid_launch_settings_are_refused(values: dict[str, object], problem: str) -> None:
    with pytest.raises(ValidationError, match=problem):
        LaunchSettings.model_validate({"model": "tiny", **values})


def test_values_of_variables_are_shown_nowhere() -> None:
    settings = LaunchSettings.model_validate({"python": "p", "model": "m", "environment": {"HF_TOKEN": "hf_secret"}})

    assert settings.variables() == {"HF_TOKEN": "hf_secret"}
    for shown in (repr(settings), str(settings), settings.model_dump_json(), str(settings.without_secrets())):
        assert "HF_TOKEN" in shown
        assert "hf_secret" not in shown


@pytest.mark.parametrize(
    "others", [{"container": CONTAINER}, {"port": "x"}, {"environment": {"HF_TOKEN": "hf_secret", "A B": ""}}]
)
def test_errors_do_not_hold_values_of_variables(others: dict[str, object]) -> None:
    values = {"model": "m", "environment": {"HF_TOKEN": "hf_secret"}, **others}
    values["python"] = "python3"
    with pytest.raises(ValidationError) as error:
        LaunchSettings.model_validate(values)
    assert "hf_secret" not in str(error.value)
    assert all("hf_secret" not in str(problem["input"]) for problem in error.value.errors())


def test_a_variable_may_be_a_number() -> None:
    settings = LaunchSettings.model_validate({"python": "p", "model": "m", "environment": {"SPACE": 4}})
    assert settings.variables() == {"SPACE": "4"}


def test_a_value_that_was_hidden_on_its_way_is_refused() -> None:
    settings = LaunchSettings.model_validate({"python": "p", "model": "m", "environment": {"HF_TOKEN": "hf_secret"}})
    with pytest.raises(ValidationError, match="was hidden when this configuration was stored"):
        LaunchSettings.model_validate_json(settings.model_dump_json())


def test_settings_survive_being_stored() -> None:
    settings = LaunchSettings(container=CONTAINER, model="m", extra_args=("--enforce-eager",))
    assert LaunchSettings.model_validate_json(settings.model_dump_json()) == settings


def test_a_command_line_is_split_into_words() -> None:
    settings = LaunchSettings.model_validate({"container": " ".join(CONTAINER), "model": "m", "extra_args": "-a 'b c'"})
    assert settings.container == CONTAINER
    assert settings.extra_args == ("-a", "b c")


def test_settings_can_be_keys_of_a_cache() -> None:
    one = LaunchSettings.model_validate({"python": "p", "model": "m", "environment": {"A": "1"}})
    two = LaunchSettings.model_validate({"python": "p", "model": "m", "environment": {"A": "1"}})
    assert {one: "found"}[two] == "found"


def test_every_value_counts_in_the_digest() -> None:
    one = LaunchSettings.model_validate({"python": "p", "model": "m", "environment": {"A": "1"}})
    two = LaunchSettings.model_validate({"python": "p", "model": "m", "environment": {"A": "2"}})
    assert one.digest() != two.digest()


@pytest.mark.parametrize(
    ("values", "title", "name"),
    [
        ({"model": "models/tiny-q4.gguf"}, "llama.cpp", "tiny-q4"),
        ({"model": "Org/Tiny-GGUF/tiny-q4.gguf", "served_name": "tiny"}, "llama.cpp", "tiny"),
        ({"model": "Org/Tiny"}, "vLLM", "Org/Tiny"),
        ({"model": "tiny.gguf", "backend": "vllm"}, "vLLM", "tiny.gguf"),
    ],
)
def test_the_model_chooses_the_program_unless_one_is_named(values: dict[str, object], title: str, name: str) -> None:
    settings = LaunchSettings.model_validate(values)
    assert (settings.program.title, settings.name) == (title, name)
