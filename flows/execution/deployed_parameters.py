"""Take the parameters of a deployment's run from the deployment, except for those that a run may choose.

Prefect lets everyone who may create a run replace any parameter. An option can name code, a command, a file or a
recipient, so a run may only set options that are declared `by_run`; the others are read from the deployment on the
server when the run starts. That also gives a run that waited while its deployment changed the current configuration.
"""

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import Enum
from functools import wraps
from inspect import signature
from pathlib import Path
from types import NoneType
from typing import Any, Literal, ParamSpec, TypeAlias, TypeVar, cast, get_args, get_origin, get_type_hints
from uuid import UUID

from prefect.context import FlowRunContext
from pydantic import BaseModel
from pydantic_core import to_jsonable_python

from metric_core.errors import ConfigError
from tasks.options.option import OptionFacts, RunChoice, facts_of
from tasks.prefect_support.deployed_run import DeployedRun, read_deployed_run
from tasks.prefect_support.patience import is_unavailable
from tasks.runs.run_folder import RUNS

P = ParamSpec("P")
T = TypeVar("T")

_logger = logging.getLogger(__name__)


def is_own_run(value: Any) -> bool:
    """Return whether a value is a folder in `runs/` of the working folder, where the runs of deployments are."""
    if value is None:
        return True
    return isinstance(value, str) and Path(RUNS).resolve() in Path(value).expanduser().resolve().parents


Refused: TypeAlias = Callable[[dict[str, Any], Exception], Any]
"""A function of the parameters of a flow and the error for which they are refused.

Its result becomes the result of the flow.
"""


def as_deployed(
    *, refused: Refused | None = None, is_monitored: bool = False, **choices: RunChoice
) -> Callable[[Callable[P, T]], Callable[P, T]]:
    """Return a decorator of the function of a flow, which then gets the parameters that its deployment allows.

    A run may set options that are declared `by_run`, and fields and parameters whose type holds no text. The decorator
    validates the parameters too, so the flow must have `validate_parameters=False`: Prefect would validate those of the
    run, and read files that they name in the process.

    Args:
        refused: Function for a run whose parameters cannot be used; by default their error ends the run.
        is_monitored: True for a flow whose runs are compared with a baseline and end incidents: a run cannot set
            options that affect scores.
        choices: Further fields and parameters that a run may set: True, or a function that decides it by the value, or
            by each item of a list. A field of a model is named `PARAMETER__FIELD`.
    """
    named = {tuple(name.split("__")): choice for name, choice in choices.items()}

    def decorate(function: Callable[P, T]) -> Callable[P, T]:
        @wraps(function)
        def wrapped(*args: P.args, **kwargs: P.kwargs) -> T:
            given = dict(signature(function).bind(*args, **kwargs).arguments)
            context = FlowRunContext.get()
            assert context is not None and context.flow is not None  # noqa: S101, PT018 the function of a flow
            run = read_deployed_run()
            try:
                chosen = given if run is None else choose_parameters(run, function, named, is_monitored=is_monitored)
                validated: dict[str, Any] = context.flow.validate_parameters(chosen)
            except Exception as error:
                if refused is None or is_unavailable(error):
                    raise
                return cast("T", refused({**given, **({} if run is None else run.own)}, error))
            checked: Any = function
            return cast("T", checked(**validated))

        return wrapped

    return decorate


def choose_parameters(
    run: DeployedRun,
    function: Callable[..., Any],
    choices: Mapping[tuple[str, ...], RunChoice],
    *,
    is_monitored: bool = False,
) -> dict[str, Any]:
    """Return the parameters of a run: its deployment's, with what the run may choose in their place.

    Options that the run does not name are as in the deployment.

    Args:
        choices: Mapping from the places of fields and parameters other than options to whether a run may set them.
        is_monitored: See `as_deployed`.

    Raises:
        ConfigError: The run names another value of an option that it may not choose; the message says which.
    """
    given = run.given
    if run.is_unchanged and run.is_outdated:
        _logger.info("the deployment %s has changed since this run was created", run.deployment)
        given = {**given, **run.own}
    rules = _Rules(choices, is_monitored)
    merged = _merge(run.own, given, _parameters(function), (), rules)
    if rules.refused:
        names = ", ".join(".".join(place) for place in rules.refused)
        why = "what can name code, commands, files or addresses is taken from the deployment"
        if is_monitored:
            why += ", as is what changes scores, since its runs are compared; the deployment evaluate runs a trial"
        since = "The deployment has changed since the run was created. " if run.is_outdated else ""
        raise ConfigError(
            f"a run of the deployment {run.deployment} cannot set {names}: {why}. {since}Leave it out, or change the "
            "configuration and deploy it again. `assay docs deployments` lists what a run may choose."
        )
    return merged


@dataclass(frozen=True, slots=True)
class _Declared:
    """A parameter of a flow, or a field of a model: its type, its default as JSON, and its facts if it is an option."""

    type: Any
    default: Any
    facts: OptionFacts | None = None

    def choice(self, named: RunChoice, *, is_monitored: bool) -> RunChoice:
        """Return whether a run may set it.

        Args:
            named: Choice of the flow for a parameter or field other than an option.
            is_monitored: See `as_deployed`.
        """
        if self.facts is None:
            return named or not _holds_text(self.type)
        return False if is_monitored and self.facts.affects_scores else self.facts.by_run


@dataclass(frozen=True, slots=True)
class _Rules:
    """Rules about the parameters of a run, and the places of those that broke them."""

    choices: Mapping[tuple[str, ...], RunChoice]
    is_monitored: bool
    refused: list[tuple[str, ...]] = field(default_factory=list)


def _parameters(function: Callable[..., Any]) -> dict[str, _Declared]:
    types = get_type_hints(function)
    return {
        name: _Declared(types[name], None if each.default is each.empty else to_jsonable_python(each.default))
        for name, each in signature(function).parameters.items()
    }


def _fields(model: type[BaseModel]) -> dict[str, _Declared]:
    found = {}
    for name, each in model.model_fields.items():
        default = None if each.is_required() else each.get_default(call_default_factory=True)
        found[name] = _Declared(each.annotation, to_jsonable_python(default), facts_of(each))
    return found


def _merge(
    own: Mapping[str, object],
    given: Mapping[str, object],
    declared: Mapping[str, _Declared],
    place: tuple[str, ...],
    rules: _Rules,
) -> dict[str, Any]:
    """Return the values of a table of the deployment, with those of the run; note the places that a run may not set."""
    merged = dict(own)
    for name, value in given.items():
        here, known = (*place, name), declared.get(name)
        if known is None:
            rules.refused.append(here)
            continue
        before = own.get(name, known.default)
        if value == before:
            continue
        if (model := _model_in(known.type)) and isinstance(value, Mapping) and isinstance(before, Mapping | None):
            if inner := _merge(before or {}, value, _fields(model), here, rules):
                merged[name] = inner
        elif _allows(known.choice(rules.choices.get(here, False), is_monitored=rules.is_monitored), value, before):
            merged[name] = value
        else:
            rules.refused.append(here)
    return merged


def _allows(choice: RunChoice, value: Any, before: Any) -> bool:
    if not callable(choice):
        return choice
    known = before if isinstance(before, list) else [before]
    return all(item in known or choice(item) for item in (value if isinstance(value, list) else [value]))


def _model_in(annotation: Any) -> type[BaseModel] | None:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation
    return next((model for part in get_args(annotation) if (model := _model_in(part)) is not None), None)


def _holds_text(annotation: Any) -> bool:
    if get_origin(annotation) is Literal:
        return False
    if parts := get_args(annotation):
        return any(_holds_text(part) for part in parts if part is not Ellipsis)
    return not (isinstance(annotation, type) and issubclass(annotation, int | float | Enum | UUID | NoneType))
