"""Copy options into a request in which each may be left out, so that an option stays one declaration."""

import re
from collections.abc import Callable, Iterable, Mapping
from typing import Annotated, Any, TypeVar, get_args

from pydantic import BaseModel, Field, create_model
from pydantic.fields import FieldInfo

from tasks.options.option import OptionFacts

S = TypeVar("S", bound=BaseModel)

_DEFAULT = re.compile(r" Default: .*$", re.DOTALL)


def optional(
    group: type[BaseModel], names: Iterable[str], default: str = "as in the run"
) -> dict[str, tuple[Any, FieldInfo]]:
    """Return fields with the types, constraints and facts of options, and None as the default.

    Args:
        default: Description of the default, such as "as in the run".
    """
    found: dict[str, tuple[Any, FieldInfo]] = {}
    for name in names:
        field, text = group.model_fields[name], _DEFAULT.sub("", group.model_fields[name].description or "")
        rules = tuple(each for each in field.metadata if not isinstance(each, OptionFacts))
        kind: Any = Annotated[(field.annotation, *rules)] if rules else field.annotation
        copied: Any = Field(None, description=f"{text} Default: {default}.")
        copied.metadata.extend(each for each in field.metadata if isinstance(each, OptionFacts))
        found[name] = (kind if type(None) in get_args(field.annotation) else kind | None, copied)
    return found


def with_fields(fields: Mapping[str, tuple[Any, FieldInfo]]) -> Callable[[type[S]], type[S]]:
    """Return a decorator that adds fields to a model.

    Args:
        fields: Name -> type and field, as `optional` returns them.

    >>> class Configuration(BaseModel):
    ...     workers: Annotated[int, Field(ge=1, description="Number of workers. Default: 4.")] = 4
    >>> @with_fields(optional(Configuration, ["workers"]))
    ... class Request(BaseModel):
    ...     run: str
    >>> Request(run="runs/first"), Request.model_validate({"run": "runs/first", "workers": 2})
    (Request(run='runs/first', workers=None), Request(run='runs/first', workers=2))
    >>> Request.model_fields["workers"].description
    'Number of workers. Default: as in the run.'
    """

    def decorate(model: type[S]) -> type[S]:
        added: dict[str, Any] = dict(fields)
        return create_model(model.__name__, __base__=model, __module__=model.__module__, __doc__=model.__doc__, **added)

    return decorate
