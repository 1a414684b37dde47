"""Define a flow that neither describes its parameters before someone asks nor imports FastAPI to send them."""

import copy
from collections.abc import Callable, Mapping
from inspect import Signature
from typing import Any, ParamSpec, TypeVar

from prefect import Flow
from prefect.utilities.callables import ParameterSchema, parameter_schema
from pydantic_core import to_jsonable_python

P = ParamSpec("P")
R = TypeVar("R")


class LateFlow(Flow[P, R]):
    """A flow whose parameters are models, texts and numbers; defining and starting it takes a quarter of a second less.

    Prefect describes the parameters of a flow in JSON Schema when the flow is defined, for forms of deployments, which
    make their own description; and it imports all of FastAPI for one function that turns parameters into JSON values.

    Args:
        options: Options of the flow; see `prefect.flow`.
    """

    def __init__(self, fn: Callable[P, R], **options: Any) -> None:
        function: Any = fn
        function.__signature__ = Signature()  # the parameters are described when they are read
        try:
            super().__init__(fn, **options)
        finally:
            del function.__signature__
            self.__dict__.pop("__signature__", None)  # copied from the function: a deployment would have no parameters

    @property
    def parameters(self) -> ParameterSchema:
        """The description of the parameters."""
        return parameter_schema(self.fn)

    @parameters.setter
    def parameters(self, described: ParameterSchema) -> None:
        """Ignore the description that Prefect makes when the flow is defined."""

    def serialize_parameters(self, parameters: Mapping[str, object]) -> dict[str, Any]:
        """Return the parameters as JSON values, written by pydantic.

        Args:
            parameters: Mapping from the name of each parameter to its value.
        """
        return {name: to_jsonable_python(value) for name, value in parameters.items()}


def late_flow(**options: Any) -> Callable[[Callable[P, R]], LateFlow[P, R]]:
    """Return a decorator that makes a `LateFlow` of a function.

    Args:
        options: Options of the flow; see `prefect.flow`.
    """
    return lambda fn: LateFlow(fn, **options)


def with_function(of: Flow[P, R], function: Callable[P, R]) -> Flow[P, R]:
    """Return a flow with another function, for a caller that has already made what the flow's own function makes.

    Args:
        of: Flow with the name, the options and the parameters; it is not changed.
        function: Function of the same parameters, wrapped as the flow's own.
    """
    changed = copy.copy(of)
    changed.fn = function
    return changed
