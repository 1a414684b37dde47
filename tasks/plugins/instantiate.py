"""Create a plugin object from its name and options, and check that it implements the protocol."""

import inspect
import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from metric_core.errors import AssayError, EmbedderError, JudgeError, PluginError
from tasks.plugins.load_object import Group, digest_with, load_object
from tasks.runtime.credentials import check_reference, read_secret

_SECRET = re.compile(
    r"(?:^|[_-])(?:api_?key|authorization|cookie|key|passphrase|password|secret|token)$", re.IGNORECASE
)
_ERRORS: Mapping[Group, type[AssayError]] = {Group.JUDGES: JudgeError, Group.EMBEDDERS: EmbedderError}
_PROTOCOLS: Mapping[Group, tuple[str, ...]] = {
    Group.JUDGES: ("identity", "can_answer", "fingerprint", "choose", "generate"),
    Group.EMBEDDERS: ("identity", "embed"),
    Group.RECOGNIZERS: ("identity", "entities"),
    Group.RETRIEVERS: ("identity", "retrieve"),
    Group.RECIPIENTS: ("send",),
}
_ARGUMENTS: Mapping[str, tuple[str, ...]] = {
    "can_answer": ("kind",),
    "fingerprint": ("kind",),
    "choose": ("questions", "on_answer"),
    "generate": ("questions", "on_answer"),
    "embed": ("texts",),
    "entities": ("texts",),
    "retrieve": ("query",),
    "send": ("alert",),
}
"""The positional arguments of each protocol method, in order."""


@dataclass(frozen=True, slots=True)
class PluginInstance:
    """A plugin object, ready for use.

    Args:
        name: Name in the configuration.
        code: Digest of its code and options.
    """

    group: Group
    name: str
    obj: Any
    code: str

    def call(self, name: str, method: Callable[..., Any], *arguments: Any) -> Any:
        """Call a method of the object, and translate its exceptions into errors that name the plugin.

        Args:
            name: Name of the method for error messages.

        Raises:
            AssayError: The method raised an exception; JudgeError for a judge, EmbedderError for an embedder.
        """
        try:
            return method(*arguments)
        except AssayError:
            raise
        except Exception as error:
            raise self.error(f"raised {type(error).__name__} in {name}: {error}") from error

    def error(self, problem: str) -> AssayError:
        """Create the error that describes a problem with the plugin."""
        return _ERRORS.get(self.group, PluginError)(f"{self.name} {problem}")


def is_secret_name(name: str) -> bool:
    """Return whether the name of an option suggests that its value is a secret.

    >>> is_secret_name("api_key"), is_secret_name("top_k")
    (True, False)
    """
    return _SECRET.search(name) is not None


def check_secret_references(options: Mapping[str, object]) -> Mapping[str, Any]:
    """Check that options whose names suggest secrets contain references instead of secrets.

    Raises:
        ValueError: An option contains a secret; the message does not repeat it.

    >>> check_secret_references({"api_key": "sk-1"})
    Traceback (most recent call last):
        ...
    ValueError: the option api_key: a secret is given by reference: ...
    """
    _map_secrets(options, check_reference)
    return options


def _map_secrets(options: Mapping[str, object], use: Callable[[str], str]) -> dict[str, Any]:
    """Return the options with every text whose name suggests a secret replaced, also in nested tables."""
    replaced: dict[str, Any] = {}
    for name, value in options.items():
        if isinstance(value, Mapping):
            replaced[name] = _map_secrets(value, use)
        elif isinstance(value, str) and is_secret_name(name):
            try:
                replaced[name] = use(value)
            except ValueError as error:
                raise ValueError(f"the option {name}: {error}") from None
        else:
            replaced[name] = value
    return replaced


def instantiate(group: Group, name: str, options: Mapping[str, object]) -> PluginInstance:
    """Return the plugin with a name, created once per process for the same options; a retriever, for each call.

    A retriever may have read an index that is rebuilt before the next run of the process.

    Args:
        name: `module:attribute` or entry point name of the object, or of a class or function that creates it.
        options: Keyword arguments of the class or function; references to secrets are replaced by the secrets.

    Raises:
        PluginError: The object cannot be found or created, or lacks a member of the protocol.
    """
    create = _create if group is Group.RETRIEVERS else _create_once
    return create(group, name, json.dumps(options, sort_keys=True))


def _create(group: Group, name: str, options_json: str) -> PluginInstance:
    loaded, options = load_object(group, name), json.loads(options_json)
    obj = loaded.obj
    if isinstance(obj, type) or not _implements(group, obj):
        if not callable(obj):
            raise _missing_error(group, name, obj)
        arguments = _map_secrets(options, read_secret)
        try:
            obj = obj(**arguments)
        except AssayError:
            raise
        except Exception as error:
            raise PluginError(f"{name} cannot be created: {type(error).__name__}: {error}") from error
    elif options:
        raise PluginError(f"{name} is an instance, so it takes no options; name a class or a function")
    if not _implements(group, obj):
        raise _missing_error(group, name, obj)
    _check_methods(group, name, obj)
    return PluginInstance(group, name, obj, digest_with(loaded.code, options_json))


_create_once = lru_cache(maxsize=64)(_create)


def _implements(group: Group, obj: Any) -> bool:
    return not _missing_members(group, obj)


def _missing_members(group: Group, obj: Any) -> list[str]:
    # Looked up on the type, because reading a property may load a model.
    attributes: Mapping[str, Any] = getattr(obj, "__dict__", {})
    return [name for name in _PROTOCOLS[group] if not hasattr(type(obj), name) and name not in attributes]


def _missing_error(group: Group, name: str, obj: Any) -> PluginError:
    kind, missing = type(obj).__name__, ", ".join(_missing_members(group, obj))
    return PluginError(f"{name} gives an object of type {kind}, which lacks {missing}; see `assay docs extending`")


def _check_methods(group: Group, name: str, obj: Any) -> None:
    """Check that the methods of the protocol can be called, before a run starts.

    Raises:
        PluginError: A member of the protocol is not a method, or does not accept the arguments of the protocol.
    """
    for member, arguments in _ARGUMENTS.items():
        if member not in _PROTOCOLS[group]:
            continue
        method, wanted = getattr(obj, member), ", ".join(arguments)
        if not callable(method):
            raise PluginError(f"{name}: {member} is {method!r}, wanted a method {member}({wanted})")
        try:
            signature = inspect.signature(method)
        except (TypeError, ValueError):
            continue  # extension code without a signature
        try:
            signature.bind(*arguments)
        except TypeError as error:
            raise PluginError(
                f"{name}: {member}{signature} cannot be called as {member}({wanted}): {error}; "
                "see `assay docs extending`"
            ) from error
