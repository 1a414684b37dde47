"""The parameters of the flow `rerun`: the run to run again, and the options that differ."""

import re
from collections.abc import Iterable
from typing import Annotated, Any, Literal, TypeAlias, TypeVar, get_args

from pydantic import BaseModel, Field, create_model
from pydantic.fields import FieldInfo

from flows.config.run_config import RunConfig
from metric_core.question_kinds import KindGroup
from metric_core.stages import Stage
from tasks.options.judge_options import JudgeOptions, JudgeSettings
from tasks.options.option import OptionFacts
from tasks.options.settings import Settings

Options = TypeVar("Options", bound=JudgeOptions)
S = TypeVar("S", bound=BaseModel)

_DEFAULT = re.compile(r" Default: .*$", re.DOTALL)

Rows: TypeAlias = Literal["failed", "changed", "all"]
"""The rows to recompute."""


def _optional(
    group: type[BaseModel], names: Iterable[str], default: str = "as in the run"
) -> dict[str, tuple[Any, FieldInfo]]:
    """Return fields with the types, constraints and facts of options, and None as the default."""
    found: dict[str, tuple[Any, FieldInfo]] = {}
    for name in names:
        field, text = group.model_fields[name], _DEFAULT.sub("", group.model_fields[name].description or "")
        rules = tuple(each for each in field.metadata if not isinstance(each, OptionFacts))
        kind: Any = Annotated[(field.annotation, *rules)] if rules else field.annotation
        copied: Any = Field(None, description=f"{text} Default: {default}.")
        copied.metadata.extend(each for each in field.metadata if isinstance(each, OptionFacts))
        found[name] = (kind if type(None) in get_args(field.annotation) else kind | None, copied)
    return found


_RENEWED = (
    _optional(RunConfig, ["metrics", "judge"])
    | _optional(JudgeSettings, KindGroup)
    | _optional(RunConfig, ["cache", "tables", "on_bad_row", "fail_on_failed", "budget"])
    | _optional(RunConfig, ["out"], default="runs/<time>-<source>-rerun")
)
"""The options that a rerun may set."""


def _with_renewed(model: type[S]) -> type[S]:
    """Return a model with the options that a rerun may set."""
    added: dict[str, Any] = dict(_RENEWED)
    return create_model(model.__name__, __base__=model, __module__=model.__module__, __doc__=model.__doc__, **added)


@_with_renewed
class RerunRequest(Settings):
    """The run to run again, which rows and stages of it to recompute, and the options that differ."""

    run: str = Field(description="Run folder.")
    rows: Rows | None = Field(
        None,
        description="Rows with a failed cell, rows that the source has changed or added since, or all. Default: all "
        "with a stage, else those with a failed cell.",
    )
    stage: Stage | None = Field(None, description="First stage to recompute. Default: all.")

    @property
    def chosen_rows(self) -> Rows:
        """The rows to recompute: a named stage is recomputed for all rows unless the request names rows.

        >>> RerunRequest(run="runs/first").chosen_rows, RerunRequest(run="runs/first", stage="verdicts").chosen_rows
        ('failed', 'all')
        """
        if self.rows is not None:
            return self.rows
        return "failed" if self.stage is None else "all"

    @property
    def changes(self) -> dict[str, Any]:
        """The options that are set, by name; those of groups of questions by the name of the group."""
        return {name: value for name in _RENEWED if (value := getattr(self, name))}

    def apply(self, old: Options) -> Options:
        """Return the options of the rerun.

        The judges of groups of questions stay, unless the request names others. One for verdicts replaces a cascade.
        """
        changes = self.changes
        judge: JudgeSettings = changes.pop("judge", old.judge)
        named = {group: changes.pop(group) for group in KindGroup if group in changes}
        by_group = {**old.judge.by_group, **judge.by_group, **named}
        groups = {str(group): each for group, each in by_group.items()}
        kept: dict[str, Any] = {"out": None, "baseline": None}
        if KindGroup.VERDICTS in by_group:
            kept["cascade"] = None
        return old.model_copy(update={**kept, **changes, "judge": judge.model_copy(update=groups)})
