"""What a user can set about a judge server that is launched here."""

import hashlib
import json
import shlex
from typing import Annotated, Any, Literal, TypeAlias

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    SecretStr,
    StringConstraints,
    ValidationInfo,
    field_validator,
)

API_SERVER = "vllm.entrypoints.openai.api_server"
"""The module that serves. `vllm serve` looks up a distribution named vllm, which repackaged builds do not have."""

RUN = "run"
"""The subcommand of a container engine, after which options go."""

MASKED = str(SecretStr("hidden"))
MANAGED = {
    "--model": "model",
    "--served-model-name": "served_name",
    "--dtype": "dtype",
    "--tensor-parallel-size": "tensor_parallel_size",
    "-tp": "tensor_parallel_size",
    "--max-model-len": "max_model_len",
    "--gpu-memory-utilization": "gpu_memory_utilization",
    "--host": "host",
    "--port": "port",
}
"""Options of vLLM that have a field here -> the field."""


def _as_text(value: Any) -> Any:
    """Configuration files have numbers without quotes; as text they are no error, which would show them."""
    return str(value) if type(value) in (int, float) else value


def _refuse_masked(value: SecretStr) -> SecretStr:
    if value.get_secret_value() == MASKED:
        raise ValueError(
            "the value was hidden when this configuration was stored; set the variable in the environment of the "
            "process that launches the judge instead"
        )
    return value


def _split(value: Any) -> Any:
    """A command line, as the environment and the command line have it, becomes words."""
    return tuple(shlex.split(value)) if isinstance(value, str) else value


Words: TypeAlias = Annotated[tuple[str, ...], BeforeValidator(_split)]
Variable: TypeAlias = Annotated[str, StringConstraints(pattern=r"^[A-Za-z_][A-Za-z0-9_]*$")]
Value: TypeAlias = Annotated[SecretStr, BeforeValidator(_as_text), AfterValidator(_refuse_masked)]


class LaunchSettings(BaseModel):
    """How to launch a judge server.

    Args:
        python: the Python of an environment that has vLLM.
        container: instead of `python`, the command that runs a container, up to and including the image, whose entry
            point is `vllm serve`; name, published port and variables are put in after `run`.
        model: the model's name at the hub, or its folder (for a container: its folder there).
        served_name: the name that requests give; default: `model`.
        dtype: the type of weights and activations.
        tensor_parallel_size: GPUs that share the model.
        max_model_len: tokens that a request may have, prompt and reply; default: all that the model can read.
        gpu_memory_utilization: share of the GPU's memory to take.
        host: the address to listen on.
        port: the port to listen on; 0: a free one.
        extra_args: further options of vLLM; like `container`, a list of words or a command line.
        environment: further environment variables. Their values are shown nowhere; they do not survive being stored
            with a configuration either, so a secret is better set in the environment of the process that launches.
        entry: for `python`, the module that serves.
        start_timeout: seconds until it must be ready; a first start also downloads the model.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", hide_input_in_errors=True)

    python: str | None = Field(
        None, description="Python of an environment that has vLLM", examples=[".venv-vllm/bin/python"]
    )
    container: Words | None = Field(
        None,
        min_length=1,
        validate_default=True,
        description="instead of python: the command that runs a container with vLLM, up to the image",
        examples=[["docker", "run", "--gpus", "all", "--ipc", "host", "vllm/vllm-openai:v0.32.0"]],
    )
    model: str = Field(min_length=1, description="the model's name at the hub, or its folder")
    served_name: str | None = Field(None, min_length=1, description="the name that requests give; default: model")
    dtype: Literal["auto", "half", "float16", "bfloat16", "float", "float32"] = Field(
        "auto", description="type of weights and activations"
    )
    tensor_parallel_size: int = Field(1, ge=1, description="GPUs that share the model")
    max_model_len: int | None = Field(None, ge=256, description="tokens that a request may have", examples=[16384])
    gpu_memory_utilization: float | None = Field(
        None, gt=0, le=1, description="share of the GPU's memory to take", examples=[0.9]
    )
    host: str = Field("127.0.0.1", min_length=1, description="the address to listen on")
    port: int = Field(0, ge=0, le=65535, description="the port to listen on; 0: a free one")
    extra_args: Words = Field((), description="further options of vLLM", examples=[["--quantization", "fp8"]])
    environment: dict[Variable, Value] = Field(
        default_factory=dict, description="further environment variables; their values are shown nowhere"
    )
    entry: str = Field(API_SERVER, min_length=1, description="for python: the module that serves")
    start_timeout: float = Field(900.0, gt=0, description="seconds until it must be ready")

    @field_validator("extra_args")
    @classmethod
    def _has_no_field(cls, extra_args: tuple[str, ...]) -> tuple[str, ...]:
        for word in extra_args:
            option = word.partition("=")[0].replace("_", "-")
            if option == "--api-key":
                raise ValueError("extra_args are shown, and has --api-key; set VLLM_API_KEY in environment instead")
            field = MANAGED.get(option)
            if field is not None:
                raise ValueError(f"extra_args has {word}; set the field {field} instead")
        return extra_args

    # What one field says about another is checked at the field: an error of the whole would show all that was given,
    # values of variables too.
    @field_validator("container")
    @classmethod
    def _is_one_or_the_other(cls, container: Words | None, info: ValidationInfo) -> Words | None:
        if (info.data.get("python") is None) == (container is None):
            raise ValueError("set either python (of an environment that has vLLM) or container, and not both")
        if container is not None and RUN not in container[1:-1]:
            raise ValueError("container must be a command like docker run IMAGE, ending with the image")
        if any(word.partition("=")[0] in ("--name", "--detach", "-d") for word in container or ()):
            raise ValueError("container must hold neither --name nor --detach; the launcher names and watches it")
        return container

    @field_validator("entry")
    @classmethod
    def _goes_with_python(cls, entry: str, info: ValidationInfo) -> str:
        if info.data.get("container") is not None and entry != API_SERVER:
            raise ValueError("entry goes with python; a container serves by its image's entry point")
        return entry

    def __hash__(self) -> int:
        return hash(self.digest())

    @property
    def name(self) -> str:
        """The name of the model at the server."""
        return self.served_name or self.model

    def variables(self) -> dict[str, str]:
        """The environment variables with their values."""
        return {name: value.get_secret_value() for name, value in self.environment.items()}

    def shown(self) -> dict[str, Any]:
        """All that determines the server, fit to be shown: without the values of variables."""
        return self.model_dump(mode="json", exclude={"start_timeout"})

    def digest(self) -> str:
        """Digest of all that determines the server.

        >>> one = LaunchSettings(python="python3", model="m", start_timeout=5)
        >>> one.digest() == LaunchSettings(python="python3", model="m").digest()
        True
        """
        content = json.dumps({**self.shown(), "environment": self.variables()}, sort_keys=True)
        return hashlib.sha256(content.encode("utf-8", "surrogatepass")).hexdigest()
