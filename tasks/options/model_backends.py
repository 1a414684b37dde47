"""Check the backend of a model: a built-in one or a plugin."""

import re
from collections.abc import Callable, Mapping
from typing import Annotated, Any, TypeAlias

from pydantic import AfterValidator

from tasks.plugins.instantiate import check_secret_references
from tasks.plugins.load_object import Group, installed_names

BUILT_IN: Mapping[Group, tuple[str, ...]] = {
    Group.JUDGES: ("builtin", "server", "verifier", "scripted"),
    Group.EMBEDDERS: ("minilm", "huggingface", "server"),
    Group.RECOGNIZERS: (),
}
"""The backends that need no plugin."""

_REFERENCE = re.compile(r"[\w.]+:[\w.]+")


def _backend_validator(group: Group) -> Callable[[str], str]:
    """Return a validator that accepts built-in backends, `module:attribute` and installed entry points."""

    def check(name: str) -> str:
        if name in BUILT_IN[group] or _REFERENCE.fullmatch(name):
            return name
        packaged = list(installed_names(group))
        if name in packaged:
            return name
        names = [f"{each!r}, " for each in (*BUILT_IN[group], *packaged)]
        choices = "".join(names) + "module:attribute for a plugin"
        raise ValueError(f"wanted {choices}{'' if '@' in name else f', got {name!r}'}")

    return check


JudgeBackend: TypeAlias = Annotated[str, AfterValidator(_backend_validator(Group.JUDGES))]
EmbedderBackend: TypeAlias = Annotated[str, AfterValidator(_backend_validator(Group.EMBEDDERS))]
RecognizerBackend: TypeAlias = Annotated[str, AfterValidator(_backend_validator(Group.RECOGNIZERS))]
"""A built-in backend, or a plugin: `module:attribute` or the name of an entry point."""

PluginOptions: TypeAlias = Annotated[dict[str, Any], AfterValidator(check_secret_references)]
"""Keyword arguments that a plugin is instantiated with."""
