"""Declare the options of a judge server: its model, prompts and sampling."""

from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import AfterValidator, Field

from tasks.options.cost_options import Prices
from tasks.options.option import Option, implementation_fields
from tasks.options.server_options import ServerOptions
from tasks.plugins.instantiate import is_secret_name

_FIELDS_OF_REQUESTS = {
    "model": "model",
    "messages": "prompts",
    "temperature": "temperature",
    "seed": "seed",
    "max_tokens": "max_output_tokens",
    "max_completion_tokens": "max_output_tokens",
    **dict.fromkeys(("n", "stream", "stream_options", "logprobs", "top_logprobs")),
    **dict.fromkeys(("response_format", "structured_outputs", "guided_choice", "guided_json")),
}
"""Field of a request that the judge sets -> the options that it is set from; None if no option changes it."""


def _check_extra_body(fields: Mapping[str, object]) -> Mapping[str, Any]:
    for name in _FIELDS_OF_REQUESTS.keys() & fields.keys():
        options = _FIELDS_OF_REQUESTS[name]
        advice = f"set {options}" if options else "no option changes it"
        raise ValueError(f"the judge sets the field {name!r} of its requests itself: {advice}")
    if not isinstance(template := fields.get("chat_template_kwargs", {}), Mapping):
        # pydantic turns a ValueError, and no TypeError, into a message about the option
        raise ValueError(  # noqa: TRY004
            f"chat_template_kwargs is a table of arguments, got {type(template).__name__}"
        )
    if "enable_thinking" in template:
        raise ValueError("chat_template_kwargs.enable_thinking is set by the option thinking")
    for name in _secret_names(fields):
        raise ValueError(f"{name} looks like a secret, which would end up in run folders: name the key in api_key")
    return fields


def _secret_names(value: Any) -> list[str]:
    if isinstance(value, Mapping):
        inner = [name for each in value.values() for name in _secret_names(each)]
        return [name for name, each in value.items() if isinstance(each, str) and is_secret_name(name)] + inner
    return [name for each in value for name in _secret_names(each)] if isinstance(value, list | tuple) else []


RISES_FROM, _PEAK = 128, 4
"""Least `concurrency` that is not meant as a limit, and the multiple to which it may rise."""


class ServerJudgeOptions(ServerOptions, affects_scores=True):
    """Options of a judge server: its address, its model, and what requests contain."""

    language: Annotated[str, Option("Language of the packaged prompts.", holds="text")] = "en"
    prompts: Annotated[
        str | None,
        Option(
            "Folder with user-defined prompts, as `assay prompts export` writes it. Default: the packaged ones.",
            holds="path",
            examples=["prompts"],
        ),
    ] = None
    context_window: Annotated[
        int | None,
        Option("Context window of the model in tokens, where the server does not report it.", ge=256),
    ] = None
    max_output_tokens: Annotated[
        int,
        Option("Maximum number of tokens of a JSON reply, and of reasoning.", ge=16),
    ] = 2048
    temperature: Annotated[float, Option("Temperature of answers that are asked for once.", ge=0, le=2)] = 0.0
    seed: Annotated[int, Option("Seed of sampling, at temperatures above 0.", ge=0)] = 0
    thinking: Annotated[
        bool, Option("Let a reasoning model think before it answers: far slower, and without probabilities.")
    ] = False
    extra_body: Annotated[
        Annotated[dict[str, Any], AfterValidator(_check_extra_body)],
        Option(
            "Further fields of every chat request, as the server documents them: the provider that a gateway takes, "
            "arguments of the chat template, sampling parameters that have no option here.",
            holds="secret",
            examples=[{"top_k": 20}],
        ),
    ] = Field(default_factory=dict)

    prices: Annotated[
        Prices | None,
        Option(
            "Prices of this judge alone. Default: [prices].",
            affects_scores=False,
            examples=[{"prompt": 0.15, "output": 0.6}],
        ),
    ] = None

    @property
    def peak_in_flight(self) -> int:
        """The number of conversations to which `concurrency` may rise."""
        return _PEAK * self.concurrency if self.concurrency >= RISES_FROM else self.concurrency

    @property
    def prompt_source(self) -> str:
        """The folder or the language of the prompts."""
        return self.prompts or self.language

    def determining(self) -> dict[str, object]:
        """Return the options that can change an answer; runs that share answers may differ in all others.

        `extra_body` is among them only if it is set, so that requests without it keep their keys.

        >>> sorted(ServerJudgeOptions(urls=("http://localhost:8000",)).determining())[:3]
        ['context_window', 'language', 'max_output_tokens']
        """
        unset = set() if self.extra_body else {"extra_body"}
        return self.model_dump(exclude=implementation_fields(type(self)) | unset)
