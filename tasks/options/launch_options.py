"""Declare the options of a judge server that is launched on this machine."""

import hashlib
import json
import shlex
from typing import Annotated, Any, Literal, TypeAlias

from pydantic import (
    AfterValidator,
    BeforeValidator,
    ConfigDict,
    Field,
    SecretStr,
    StringConstraints,
    ValidationInfo,
    field_validator,
)

from tasks.options.launch_backends import BackendName, LaunchBackend, find_launch_backend
from tasks.options.option import Flag, Option, OptionGroup
from tasks.options.text_forms import list_from_text

RUN = "run"
"""The subcommand of a container engine that its options follow."""

MASKED = str(SecretStr("hidden"))
_VARIANTS = {"-tp": "--tensor-parallel-size"}
"""Other forms of options that have a field here."""

_OF_ALL = {"python", "model", "environment", "extra_args", "entry", "start_timeout", "backend"}
"""Settings that every program has."""


def _as_text(value: Any) -> Any:
    """Return a number as text: an error about an unquoted number in a configuration file would show it."""
    return str(value) if type(value) in (int, float) else value


def _refuse_masked(value: SecretStr) -> SecretStr:
    if value.get_secret_value() == MASKED:
        raise ValueError(
            "the value was hidden when this configuration was stored; set the variable in the environment of the "
            "process that launches the judge instead"
        )
    return value


Words: TypeAlias = Annotated[tuple[str, ...], BeforeValidator(list_from_text(shlex.split))]
"""A command line as a list of words, or as one text in an environment variable or a flag."""
Variable: TypeAlias = Annotated[str, StringConstraints(pattern=r"^[A-Za-z_][A-Za-z0-9_]*$")]
Value: TypeAlias = Annotated[SecretStr, BeforeValidator(_as_text), AfterValidator(_refuse_masked)]


class LaunchSettings(OptionGroup, affects_scores=True):
    """Options of a judge server that is launched on this machine."""

    model_config = ConfigDict(hide_input_in_errors=True)

    python: Annotated[
        str | None,
        Option(
            "Python of the environment that has the program. Default: the one that `assay judge install` makes in this "
            "folder.",
            holds="command",
            affects_scores=False,
            cli="--python",
            examples=[".venv-vllm/bin/python"],
        ),
    ] = None
    container: Annotated[
        Words | None,
        Option(
            "Instead of python: the command that runs a container with vLLM, up to and including the image, "
            "whose entry point is vllm serve. Name, published port and variables are inserted after run.",
            holds="text",
            cli=Flag(
                long="--container",
                help="Instead of --python: the command that runs a container with vLLM, up to the image.",
            ),
            min_length=1,
            validate_default=True,
            examples=[["docker", "run", "--gpus", "all", "--ipc", "host", "vllm/vllm-openai:v0.32.0"]],
        ),
    ] = None
    model: Annotated[
        str,
        Option(
            "Name of the model at the hub, or its folder or GGUF file; for a container, its folder there.",
            holds="text",
            min_length=1,
        ),
    ]
    served_name: Annotated[
        str | None,
        Option("Name of the model in requests. Default: model.", holds="text", cli="--served-name", min_length=1),
    ] = None
    dtype: Annotated[
        Literal["auto", "half", "float16", "bfloat16", "float", "float32"],
        Option("Type of weights and activations.", cli="--dtype"),
    ] = "auto"
    tensor_parallel_size: Annotated[int, Option("Number of GPUs that share the model.", cli="--gpus", ge=1)] = 1
    max_model_len: Annotated[
        int | None,
        Option(
            "Maximum number of tokens of a request, prompt and reply. Default: the context window of the model.",
            cli="--max-model-len",
            ge=256,
            examples=[16384],
        ),
    ] = None
    gpu_memory_utilization: Annotated[
        float | None,
        Option("Share of the GPU memory to use.", affects_scores=False, cli="--gpu-memory", gt=0, le=1, examples=[0.9]),
    ] = None
    host: Annotated[
        str,
        Option("Address to listen on.", holds="text", affects_scores=False, min_length=1),
    ] = "127.0.0.1"
    port: Annotated[
        int, Option("Port to listen on; 0 takes a free one.", affects_scores=False, cli="--port", ge=0, le=65535)
    ] = 0
    extra_args: Annotated[
        Words,
        Option(
            "Further options of vLLM, as a list of words or one text; for llama.cpp NAME=VALUE.",
            holds="text",
            cli=Flag(long="--extra-args", metavar="TEXT", repeats=True),
            examples=[["--quantization", "fp8"]],
        ),
    ] = ()
    environment: Annotated[
        dict[Variable, Value],
        Option(
            "Further environment variables. Their values are never shown, and do not survive storing the "
            "configuration: set a secret in the environment of the process that launches the judge.",
            holds="secret",
        ),
    ] = Field(default_factory=dict)
    entry: Annotated[
        str | None, Option("For python: the module to run. Default: that of the program.", holds="text", min_length=1)
    ] = None
    start_timeout: Annotated[
        float,
        Option(
            "Seconds until the server must be ready; a first start also downloads the model.",
            affects_scores=False,
            gt=0,
        ),
    ] = 900.0
    backend: Annotated[
        BackendName | None,
        Option(
            "Program that serves the model. Default: llama.cpp for a file that ends in .gguf, else vllm.",
            cli="--backend",
            validate_default=True,
        ),
    ] = None

    # Relations between fields are checked at a field: an error of the whole model would show its whole input, including
    # the values of environment variables.
    @field_validator("container")
    @classmethod
    def _check_container(cls, container: Words | None, info: ValidationInfo) -> Words | None:
        if container is not None and info.data.get("python") is not None:
            raise ValueError(
                "got both; set either python (of an environment with vLLM, which `assay judge install` makes) or "
                "container (a command such as docker run IMAGE)"
            )
        if container is not None and RUN not in container[1:-1]:
            raise ValueError("container must be a command like docker run IMAGE, ending with the image")
        if any(word.partition("=")[0] in ("--name", "--detach", "-d") for word in container or ()):
            raise ValueError("container must hold neither --name nor --detach; the launcher names and watches it")
        return container

    @field_validator("entry")
    @classmethod
    def _check_entry(cls, entry: str | None, info: ValidationInfo) -> str | None:
        if info.data.get("container") is not None and entry is not None:
            raise ValueError("entry is for python only; a container serves by its image's entry point")
        return entry

    @field_validator("backend")
    @classmethod
    def _check_backend(cls, backend: BackendName | None, info: ValidationInfo) -> BackendName | None:
        """Refuse what the program does not have, and options that have a field here."""
        given = info.data
        if "model" not in given:
            return backend
        found = find_launch_backend(backend, given["model"])
        fields = cls.model_fields
        for name in given.keys() - found.flags.keys() - _OF_ALL:
            if given[name] != fields[name].default:
                raise ValueError(f"{name} is set, and {found.title}, which serves {given['model']}, does not have it")
        managed = {flag: name for name, flag in found.flags.items() if flag is not None}
        managed |= {"--model": "model"}
        for word in given.get("extra_args", ()):
            option = word.partition("=")[0].replace("_", "-")
            if option == "--api-key":
                raise ValueError("extra_args has --api-key, but is not hidden; set VLLM_API_KEY in environment instead")
            field = managed.get(_VARIANTS.get(option, option))
            if field is not None:
                raise ValueError(f"extra_args has {word}; set the field {field} instead")
        return backend

    def __hash__(self) -> int:
        return hash(self.digest())

    @property
    def program(self) -> LaunchBackend:
        """The program that serves the model."""
        return find_launch_backend(self.backend, self.model)

    @property
    def name(self) -> str:
        """The name of the model at the server."""
        return self.served_name or self.program.name_of(self.model)

    def variables(self) -> dict[str, str]:
        """Return the environment variables with their values."""
        return {name: value.get_secret_value() for name, value in self.environment.items()}

    def without_secrets(self) -> dict[str, Any]:
        """Return everything that determines the server, without the values of environment variables."""
        return self.model_dump(mode="json", exclude={"start_timeout"})

    def digest(self) -> str:
        """Return the digest of everything that determines the server.

        >>> one = LaunchSettings(python="python3", model="m", start_timeout=5)
        >>> one.digest() == LaunchSettings(python="python3", model="m").digest()
        True
        """
        content = json.dumps({**self.without_secrets(), "environment": self.variables()}, sort_keys=True)
        return hashlib.sha256(content.encode("utf-8", "surrogatepass")).hexdigest()
