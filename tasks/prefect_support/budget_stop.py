"""End a flow run that has spent its budget in a separate state, which does not mean a fault."""

from collections.abc import Callable
from functools import wraps
from typing import Any, ParamSpec, TypeVar, cast

from prefect.states import Failed

from metric_core.errors import BudgetSpentError

P = ParamSpec("P")
T = TypeVar("T")

STATE = "Budget spent"
"""Name of the state; its type is that of a failed run."""


def budget_spent(error: BudgetSpentError) -> Any:
    """Return the final state of a flow run whose budget is spent; a caller of the flow gets the error raised."""
    return Failed(name=STATE, message=str(error), data=error)


def stop_at_budget(function: Callable[P, T]) -> Callable[P, T]:
    """Wrap the function of a flow, so that its run ends in the state "Budget spent" when its budget is."""

    @wraps(function)
    def wrapped(*args: P.args, **kwargs: P.kwargs) -> T:
        try:
            return function(*args, **kwargs)
        except BudgetSpentError as error:
            return cast("T", budget_spent(error))  # a state ends the flow run, whatever its function returns

    return wrapped
