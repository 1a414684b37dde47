"""Makes an object of the user's own from its name and options, and checks that it has the protocol of ours."""

import inspect
import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from metric_core.errors import AssayError, EmbedderError, JudgeError, PluginError
from tasks.plugins.load_object import Group, digest_with, load_object
from tasks.runtime.credentials import is_reference, read_secret

_SECRET = re.compile(
    r"(?:^|[_-])(?:api_?key|authorization|cookie|key|passphrase|password|secret|token)$", re.IGNORECASE
)
_ERRORS: Mapping[Group, type[AssayError]] = {Group.JUDGES: JudgeError, Group.EMBEDDERS: EmbedderError}
_PROTOCOLS: Mapping[Group, tuple[str, ...]] = {
    Group.JUDGES: ("identity", "can_answer", "fingerprint", "choose", "generate"),
    Group.EMBEDDERS: ("identity", "embed"),
    Group.RECOGNIZERS: ("identity", "entities"),
    Group.RETRIEVERS: ("identity", "retrieve"),
}
_ARGUMENTS: Mapping[str, tuple[str, ...]] = {
    "can_answer": ("kind",),
    "fingerprint": ("kind",),
    "choose": ("questions", "on_answer"),
    "generate": ("questions", "on_answer"),
    "embed": ("texts",),
    "entities": ("texts",),
    "retrieve": ("query",),
}
"""What the methods of the protocols are called with, in this order."""


@dataclass(frozen=True, slots=True)
class PluginInstance:
    """An object of the user's own, ready for use.

    Args:
        group: what kind of object it is.
        name: the name under which it is configured.
        thing: the object.
        code: digest of its code and options.
    """

    group: Group
    name: str
    obj: Any
    code: str

    def call(self, what: str, call: Callable[..., Any], *arguments: Any) -> Any:
        """Calls a method of the object; whatever it raises names the object.

        Raises:
            AssayError: it raised; a JudgeError for a judge, an EmbedderError for an embedder.
        """
        try:
            return call(*arguments)
        except AssayError:
            raise
        except Exception as error:
            raise self.error(f"raised {type(error).__name__} in {what}: {error}") from error

    def error(self, what: str) -> AssayError:
        """The error that says what the object did."""
        return _ERRORS.get(self.group, PluginError)(f"{self.name} {what}")


def check_secret_references(options: Mapping[str, Any]) -> Mapping[str, Any]:
    """Checks that options that sound like secrets name them instead of holding them.

    Raises:
        ValueError: one holds its secret; the message does not repeat it.

    >>> check_secret_references({"api_key": "sk-1"})
    Traceback (most recent call last):
        ...
    ValueError: the option api_key: a secret is named, not written: ...
    """
    _map_secrets(options, is_reference)
    return options


def _map_secrets(options: Mapping[str, Any], use: Callable[[str], str]) -> dict[str, Any]:
    """The options with every text that sounds like a secret replaced, in tables within tables too."""
    done: dict[str, Any] = {}
    for name, value in options.items():
        if isinstance(value, Mapping):
            done[name] = _map_secrets(value, use)
        elif isinstance(value, str) and _SECRET.search(name):
            try:
                done[name] = use(value)
            except ValueError as error:
                raise ValueError(f"the option {name}: {error}") from None
        else:
            done[name] = value
    return done


def instantiate(group: Group, name: str, options: Mapping[str, Any]) -> PluginInstance:
    """The object of that name, made with these options, once a process.

    Args:
        group: what kind of object is wanted.
        name: `module:attribute` or an entry point's name: of the object, or of a class or function that makes it.
        options: keyword arguments for what makes it; secrets are read and handed over.

    Raises:
        PluginError: it can not be found or made, or lacks a part of the protocol.
    """
    return _call_factory(group, name, json.dumps(options, sort_keys=True))


@lru_cache(maxsize=64)
def _call_factory(group: Group, name: str, written: str) -> PluginInstance:
    found, options = load_object(group, name), json.loads(written)
    thing = found.obj
    if isinstance(thing, type) or not _implements(group, thing):
        if not callable(thing):
            raise _missing_error(group, name, thing)
        given = _map_secrets(options, read_secret)
        try:
            thing = thing(**given)
        except AssayError:
            raise
        except Exception as error:
            raise PluginError(f"{name} can not be made: {type(error).__name__}: {error}") from error
    elif options:
        raise PluginError(f"{name} is made already, so it takes no options; name a class or a function")
    if not _implements(group, thing):
        raise _missing_error(group, name, thing)
    _check_methods(group, name, thing)
    return PluginInstance(group, name, thing, digest_with(found.code, written))


def _implements(group: Group, thing: Any) -> bool:
    return not _missing(group, thing)


def _missing(group: Group, thing: Any) -> list[str]:
    # Looked up at the type, for a property may load a model.
    return [
        part for part in _PROTOCOLS[group] if not hasattr(type(thing), part) and part not in _instance_attributes(thing)
    ]


def _instance_attributes(thing: Any) -> Mapping[str, Any]:
    own: Mapping[str, Any] = getattr(thing, "__dict__", {})
    return own


def _missing_error(group: Group, name: str, thing: Any) -> PluginError:
    kind, missing = type(thing).__name__, ", ".join(_missing(group, thing))
    return PluginError(f"{name} gives an object of type {kind}, which lacks {missing}; see docs/extending.md")


def _check_methods(group: Group, name: str, thing: Any) -> None:
    """Calls that can not succeed are found before a run begins.

    Raises:
        PluginError: a method of the protocol is none, or can not be called as the protocol has it.
    """
    for part in _PROTOCOLS[group]:
        if part not in _ARGUMENTS:
            continue
        method, wanted = getattr(thing, part), ", ".join(_ARGUMENTS[part])
        if not callable(method):
            raise PluginError(f"{name}: {part} is {method!r}, wanted a method {part}({wanted})")
        try:
            signature = inspect.signature(method)
        except (TypeError, ValueError):
            continue  # written in another language, which does not tell
        try:
            signature.bind(*_ARGUMENTS[part])
        except TypeError as error:
            raise PluginError(
                f"{name}: {part}{signature} can not be called as {part}({wanted}): {error}; see docs/extending.md"
            ) from error
