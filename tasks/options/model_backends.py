"""Declare the backends of models, and check the name of one: a built-in one or a plugin."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Annotated, Any, TypeAlias

from pydantic import AfterValidator

from tasks.plugins.instantiate import check_secret_references
from tasks.plugins.load_object import Group, installed_names


@dataclass(frozen=True, slots=True, kw_only=True)
class Backend:
    """The facts about a backend that its users rely on; `tasks/opening/backends.py` has the function that opens it.

    Args:
        description: Words of the help that follow its name.
        title: Heading of its judge in reports.
        label: Words for its judge in a sentence; None for the name of its model.
        is_served: True if its model is behind a server.
        may_rate: True if its model may be a language model, which can rate answers.
        takes_profile: True if a profile can say how its model is asked.
        ranks_claims: True if its probabilities rank claims better than its labels decide on them.
        compares_vectors: True if it works with the vectors of the embedder.
        is_reopened: True if it is opened for each stage, because what it reads may change while the process runs.
    """

    description: str = ""
    title: str = "Judge"
    label: str | None = None
    is_served: bool = False
    may_rate: bool = False
    takes_profile: bool = False
    ranks_claims: bool = False
    compares_vectors: bool = False
    is_reopened: bool = False


BACKENDS: Mapping[Group, Mapping[str, Backend]] = {
    Group.JUDGES: {
        "builtin": Backend(
            description="a small linear model without a server",
            title="Built-in judge, no language model",
            label="the built-in judge (no language model)",
            ranks_claims=True,
            compares_vectors=True,
        ),
        "server": Backend(
            description="a model behind an OpenAI-compatible server", is_served=True, may_rate=True, takes_profile=True
        ),
        "verifier": Backend(description="a small model that only verifies, in this process", takes_profile=True),
        "scripted": Backend(
            description="answers from a file, for tests",
            title="Scripted judge, answers from a file",
            may_rate=True,
            is_reopened=True,
        ),
    },
    Group.EMBEDDERS: {
        "minilm": Backend(description="packaged, no download"),
        "huggingface": Backend(description="needs the extra transformers"),
        "server": Backend(description="a model behind an OpenAI-compatible /v1/embeddings", is_served=True),
    },
    Group.RECOGNIZERS: {},
}
"""The backends that need no plugin."""

PLUGIN = Backend(may_rate=True)
"""The facts about a plugin, and about any other name."""


def find_backend(group: Group, name: str | None) -> Backend:
    """Return the facts about a backend; those about a plugin if no built-in one has the name.

    >>> find_backend(Group.JUDGES, "server").is_served, find_backend(Group.JUDGES, "my_package:Judge") is PLUGIN
    (True, True)
    """
    return BACKENDS[group].get(name or "", PLUGIN)


def describe_backends(group: Group) -> str:
    """Return the sentence of the help about the backends of a group."""
    named = ", ".join(f"{name} ({backend.description})" for name, backend in BACKENDS[group].items())
    return f"{named} or a plugin: module:attribute or an entry point."


_REFERENCE = re.compile(r"[\w.]+:[\w.]+")


def _backend_validator(group: Group) -> Callable[[str], str]:
    """Return a validator that accepts built-in backends, `module:attribute` and installed entry points."""

    def check(name: str) -> str:
        if name in BACKENDS[group] or _REFERENCE.fullmatch(name):
            return name
        packaged = list(installed_names(group))
        if name in packaged:
            return name
        names = [f"{each!r}, " for each in (*BACKENDS[group], *packaged)]
        choices = "".join(names) + "module:attribute for a plugin"
        raise ValueError(f"wanted {choices}{'' if '@' in name else f', got {name!r}'}")

    return check


JudgeBackend: TypeAlias = Annotated[str, AfterValidator(_backend_validator(Group.JUDGES))]
EmbedderBackend: TypeAlias = Annotated[str, AfterValidator(_backend_validator(Group.EMBEDDERS))]
RecognizerBackend: TypeAlias = Annotated[str, AfterValidator(_backend_validator(Group.RECOGNIZERS))]
"""A built-in backend, or a plugin: `module:attribute` or the name of an entry point."""

PluginOptions: TypeAlias = Annotated[dict[str, Any], AfterValidator(check_secret_references)]
"""Keyword arguments that a plugin is instantiated with."""
