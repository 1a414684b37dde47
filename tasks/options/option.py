"""Declare an option once: its description, its facts and its form on the command line.

An option is a field of an `OptionGroup`, annotated with `Option`. The rest of the code reads the declarations: loading
resolves paths, error messages hide secrets, fingerprints and comparisons leave out options that cannot change a score,
and the command line and the starter configuration are generated from them.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from dataclasses import field as dataclass_field
from typing import Any, ClassVar, Literal, TypeAlias, get_args, get_origin

from pydantic import AfterValidator, BaseModel, Field
from pydantic.fields import FieldInfo

from tasks.options.settings import Settings

ENVIRONMENT_PREFIX = "ASSAY_"

PathKind: TypeAlias = bool | Literal["command"]
"""True if an option is a path on this machine; a "command" is a path only if it contains a separator."""

RunChoice: TypeAlias = bool | Callable[[Any], bool]
"""Whether a run of a deployment may set an option; a function decides it by the value, or by each item of a list."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Flag:
    """The form of an option on the command line.

    Args:
        long: Long flag; empty for the argument of the command.
        short: Short flag.
        metavar: Placeholder of the value in the help.
        help: Help text; None takes the description.
        default: Default to state in the help; None takes the default of the field.
        repeats: True if the flag can be given several times and the values add up. Any other flag is refused the
            second time.
    """

    long: str
    short: str | None = None
    metavar: str | None = None
    help: str | None = None
    default: str | None = None
    repeats: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class OptionFacts:
    """The facts about an option besides its type, default and description.

    Args:
        path: True if the value is a path on this machine: relative to the configuration file that names it, and
            absolute in a deployment. A URL stays unchanged.
        may_hold_secret: True if the value, or anything in the table, may hold a secret; messages never repeat it.
        affects_scores: True if a run with another value may have other scores.
        by_run: True if a parameter of a deployment's run may change the value; else only the deployment sets it.
        words: Values that are keywords rather than paths.
        renamed_from: Earlier name of the option.
        renamed_values: Earlier value -> value.
        flag: Form on the command line; None if commands have no flag for it.
    """

    path: PathKind
    may_hold_secret: bool
    affects_scores: bool
    by_run: RunChoice = False
    words: tuple[str, ...] = ()
    renamed_from: str | None = None
    renamed_values: Mapping[str, str] = dataclass_field(default_factory=dict)
    flag: Flag | None = None


def Option(  # noqa: N802, PLR0913 used like Field
    description: str,
    *,
    path: PathKind,
    may_hold_secret: bool,
    affects_scores: bool,
    by_run: RunChoice = False,
    words: tuple[str, ...] = (),
    renamed_from: str | None = None,
    renamed_values: Mapping[str, str] | None = None,
    cli: Flag | str | None = None,
    **field: Any,
) -> Any:
    """Return the annotation of a field that declares it an option.

    Args:
        description: Description for the schema, the starter configuration and the help of commands.
        path: See OptionFacts; facts have no default, so that none is forgotten.
        may_hold_secret: See OptionFacts.
        affects_scores: See OptionFacts.
        by_run: See OptionFacts; an option that is a path or may hold a secret cannot be set by a run.
        words: See OptionFacts.
        renamed_from: See OptionFacts.
        renamed_values: See OptionFacts.
        cli: Flag on the command line; the long flag alone where the description is the help.
        field: Further arguments of pydantic's Field: constraints and examples.

    Raises:
        TypeError: A run may set a path or a secret.
    """
    if by_run and (path or may_hold_secret):
        raise TypeError(f"a run of a deployment cannot set a path or a secret: {description}")
    facts = OptionFacts(
        path=path,
        may_hold_secret=may_hold_secret,
        affects_scores=affects_scores,
        by_run=by_run,
        words=words,
        renamed_from=renamed_from,
        renamed_values=renamed_values or {},
        flag=Flag(long=cli) if isinstance(cli, str) else cli,
    )
    annotation: FieldInfo = Field(description=description, **field)
    annotation.metadata.append(facts)
    if renamed_values:
        annotation.metadata.append(AfterValidator(_refuse_renamed(renamed_values)))
    return annotation


def _refuse_renamed(renamed: Mapping[str, str]) -> Callable[[Any], Any]:
    def check(value: Any) -> Any:
        if isinstance(value, str) and value in renamed:
            raise ValueError(f"{value} is now called {renamed[value]}")
        return value

    return check


class OptionGroup(Settings):
    """Options about one concern, each declared by `Option`.

    A subclass that adds fields which no user sets, such as the settings of a stage, sets `only_options = False`.

    Raises:
        TypeError: A class is defined with a field that no Option declares.
    """

    only_options: ClassVar[bool] = True

    @classmethod
    def __pydantic_init_subclass__(cls, **kwargs: Any) -> None:
        """Refuse a class with a field that no Option declares."""
        super().__pydantic_init_subclass__(**kwargs)
        for name, field in cls.model_fields.items():
            if cls.only_options and (facts_of(field) is None or not field.description):
                raise TypeError(f"{cls.__name__}.{name} is not declared: annotate it with Option(...)")


class ModelOptions(OptionGroup):
    """Options of a model. In fingerprints the identity of the opened model takes their place."""


@dataclass(frozen=True, slots=True)
class Declaration:
    """An option and its place in a configuration.

    Args:
        place: Names of the tables that contain the option, outermost first, then the name of the option.
        field: The field that declares it.
        facts: Its facts.
        table: Group of the options in it, if it is a table.
        in_list: True if one of the tables that contain the option is in a list.
    """

    place: tuple[str, ...]
    field: FieldInfo
    facts: OptionFacts
    table: type[OptionGroup] | None
    in_list: bool

    @property
    def earlier_place(self) -> tuple[str, ...] | None:
        """The place under the earlier name; None if the option was never renamed."""
        return None if self.facts.renamed_from is None else (*self.place[:-1], self.facts.renamed_from)


def facts_of(field: FieldInfo) -> OptionFacts | None:
    """Return the facts of an option; None for a field that is no option."""
    return next((item for item in reversed(field.metadata) if isinstance(item, OptionFacts)), None)


def table_of(field: FieldInfo) -> type[OptionGroup] | None:
    """Return the group of the options in a table, or in the tables of a list; None for a single value."""
    return _group_in(field.annotation)


def _group_in(annotation: Any) -> type[OptionGroup] | None:
    if isinstance(annotation, type) and issubclass(annotation, OptionGroup):
        return annotation
    return next((group for part in get_args(annotation) if (group := _group_in(part)) is not None), None)


def declarations(
    group: type[OptionGroup], place: tuple[str, ...] = (), *, in_list: bool = False
) -> Iterator[Declaration]:
    """Yield the options of a group and of the tables in it, each table before its options."""
    for name, field in group.model_fields.items():
        facts, table = facts_of(field), table_of(field)
        if facts is None:
            continue
        here = (*place, name)
        yield Declaration(here, field, facts, table, in_list)
        if table is not None:
            yield from declarations(table, here, in_list=in_list or _is_list(field.annotation))


def _is_list(annotation: Any) -> bool:
    return get_origin(annotation) is tuple or any(_is_list(part) for part in get_args(annotation))


def implementation_fields(settings: type[BaseModel]) -> set[str]:
    """Return the fields that say how something is computed, not what: models, and options that affect no score."""
    names = set()
    for name, field in settings.model_fields.items():
        facts, table = facts_of(field), table_of(field)
        if (facts is not None and not facts.affects_scores) or (table is not None and issubclass(table, ModelOptions)):
            names.add(name)
    return names


def scoring_options(group: type[OptionGroup]) -> set[str]:
    """Return the names of the options that can change a score."""
    return {name for name, field in group.model_fields.items() if (facts := facts_of(field)) and facts.affects_scores}


def may_hold_secret(group: type[OptionGroup], place: tuple[str | int, ...]) -> bool:
    """Return whether the value at a place of a configuration may hold a secret.

    A table may hold one if any of its options may.

    Args:
        group: Group of the whole configuration.
        place: Place as pydantic names it, with numbers of list items.
    """
    table: type[OptionGroup] | None = group
    for part in place:
        if table is None or part not in table.model_fields:
            continue  # the number of a list item, the member of a union or the key of a dictionary
        field = table.model_fields[str(part)]
        facts = facts_of(field)
        if facts is None or facts.may_hold_secret:
            return True
        table = table_of(field)
    return table is not None and any(option.facts.may_hold_secret for option in declarations(table))


def map_values(
    content: Mapping[str, Any],
    group: type[OptionGroup],
    change: Callable[[OptionFacts, Any], Any],
    *,
    in_lists: bool = True,
) -> dict[str, Any]:
    """Return a configuration, as read or written, with each value of an option changed.

    Args:
        content: The configuration, in which only some options may be set.
        change: Function of an option's facts and its value that returns the new value.
        in_lists: True also changes the options of tables in lists.
    """
    changed = dict(content)
    for name, value in content.items():
        field = group.model_fields.get(name)
        facts = None if field is None else facts_of(field)
        if field is None or facts is None:
            continue
        table = table_of(field)
        if table is not None and isinstance(value, Mapping):
            changed[name] = map_values(value, table, change, in_lists=in_lists)
        elif table is not None and isinstance(value, list | tuple) and in_lists:
            changed[name] = [
                map_values(item, table, change, in_lists=True) if isinstance(item, Mapping) else item for item in value
            ]
        else:
            changed[name] = change(facts, value)
    return changed


def find_references(options: OptionGroup, without: tuple[str, ...] = ()) -> tuple[str, ...]:
    """Return the references to secrets, `env:NAME` or `block:NAME`, in the order of the options.

    Args:
        options: Options to search, with those of the tables in them.
        without: Names of tables to leave out.
    """
    found: list[str] = []

    def note(facts: OptionFacts, value: Any) -> Any:
        if facts.may_hold_secret and isinstance(value, str) and value.startswith(("env:", "block:")):
            found.append(value)
        return value

    map_values(options.model_dump(mode="json", exclude_defaults=True, exclude=set(without)), type(options), note)
    return tuple(dict.fromkeys(found))


def use_current_names(content: Mapping[str, Any], group: type[OptionGroup]) -> dict[str, Any]:
    """Return a configuration that an earlier version wrote, with the current names of its options and values.

    >>> from tasks.options.judge_options import JudgeSettings
    >>> use_current_names({"slots": 4}, JudgeSettings)
    {'max_concurrent_stages': 4}
    """
    named = {}
    current = {
        facts.renamed_from: name
        for name, field in group.model_fields.items()
        if (facts := facts_of(field)) is not None and facts.renamed_from is not None
    }
    for name, value in content.items():
        field = group.model_fields.get(current.get(name, name))
        table = None if field is None else table_of(field)
        if table is not None and isinstance(value, Mapping):
            value = use_current_names(value, table)  # noqa: PLW2901 the same value by its current names
        elif table is not None and isinstance(value, list | tuple):
            value = [use_current_names(item, table) if isinstance(item, Mapping) else item for item in value]  # noqa: PLW2901
        named[current.get(name, name)] = value
    return map_values(named, group, _current_value)


def _current_value(facts: OptionFacts, value: Any) -> Any:
    return facts.renamed_values.get(value, value) if isinstance(value, str) else value


def current_name(group: type[OptionGroup], place: tuple[str | int, ...]) -> str | None:
    """Return the current name of the option whose earlier name is at this place; None if there is no such option."""
    names = tuple(str(part) for part in place if isinstance(part, str))
    return next((option.place[-1] for option in declarations(group) if option.earlier_place == names), None)


def variable_name(place: Sequence[str]) -> str:
    """Return the environment variable of an option.

    >>> variable_name(("judge", "backend"))
    'ASSAY_JUDGE__BACKEND'
    """
    return ENVIRONMENT_PREFIX + "__".join(place).upper()
