"""Declare an option once: its description, its facts and its form on the command line.

An option is a field of an `OptionGroup`, annotated with `Option`. The rest of the code reads the declarations: loading
resolves paths, error messages hide secrets, fingerprints and comparisons leave out options that cannot change a score,
and the command line and the starter configuration are generated from them.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from types import NoneType
from typing import Annotated, Any, ClassVar, Literal, TypeAlias, get_args, get_origin

from pydantic import BaseModel, Field
from pydantic.fields import FieldInfo

from tasks.options.settings import Settings

ENVIRONMENT_PREFIX = "ASSAY_"

Holds: TypeAlias = Literal["text", "path", "command", "address", "secret"]
"""Content of the text of an option.

text: Nothing of the others; a number or a choice counts as text too.
path: A path on this machine: relative to the configuration file that names it, and absolute in a deployment. A URL
    stays unchanged.
command: A path if it contains a separator.
address: A path, or a URL that may hold a secret.
secret: Text that may hold a secret; messages never repeat it.
"""

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
        holds: Content of the value. Messages repeat nothing of a table that holds a secret.
        affects_scores: True if a run with another value may have other scores.
        by_run: True if a parameter of a deployment's run may change the value; else only the deployment sets it.
        words: Values that are keywords rather than paths.
        flag: Form on the command line; None if commands have no flag for it.
    """

    holds: Holds
    affects_scores: bool
    by_run: RunChoice = False
    words: tuple[str, ...] = ()
    flag: Flag | None = None

    @property
    def is_path(self) -> bool:
        """Whether the value is a path on this machine, or may be one."""
        return self.holds in {"path", "address"}

    @property
    def may_hold_secret(self) -> bool:
        """Whether the value may hold a secret."""
        return self.holds in {"address", "secret"}


@dataclass(frozen=True, slots=True)
class _Statement:
    """The facts that a declaration states; the group and the type of the option supply the others."""

    holds: Holds | None
    affects_scores: bool | None
    others: Mapping[str, Any]


def Option(  # noqa: N802, PLR0913 used like Field
    description: str,
    *,
    holds: Holds | None = None,
    affects_scores: bool | None = None,
    by_run: RunChoice = False,
    words: tuple[str, ...] = (),
    cli: Flag | str | None = None,
    **field: Any,
) -> Any:
    """Return the annotation of a field that declares it an option; OptionFacts describes the facts.

    Args:
        description: Description for the schema, the starter configuration and the help of commands.
        holds: An option whose type holds text must state it. Default: secret for a table with an option that may hold
            one, else text.
        affects_scores: Default: that of the group.
        by_run: A run can set neither a path nor a secret.
        cli: Flag on the command line; the long flag alone where the description is the help.
        field: Further arguments of pydantic's Field: constraints and examples.
    """
    others = {
        "by_run": by_run,
        "words": words,
        "flag": Flag(long=cli) if isinstance(cli, str) else cli,
    }
    annotation: FieldInfo = Field(description=description, **field)
    annotation.metadata.append(_Statement(holds, affects_scores, others))
    return annotation


class OptionGroup(Settings):
    """Options about one concern, each declared by `Option`.

    A class that declares options says whether they affect scores: `class Pages(OptionGroup, affects_scores=False)`. A
    subclass that adds fields which no user sets, such as the settings of a stage, sets `only_options = False`.

    Raises:
        TypeError: A class is defined with a field that no Option declares, or with an option that leaves out a fact.
    """

    only_options: ClassVar[bool] = True

    def __init_subclass__(cls, *, affects_scores: bool | None = None, **kwargs: Any) -> None:
        """Accept the argument of the class, which is used when its fields are known."""
        del affects_scores
        super().__init_subclass__(**kwargs)

    @classmethod
    def __pydantic_init_subclass__(cls, *, affects_scores: bool | None = None, **kwargs: Any) -> None:
        """Complete the facts of the options that the class declares, and refuse a field that no Option declares.

        Args:
            affects_scores: Default of the fact for the options of the class.
        """
        super().__pydantic_init_subclass__(**kwargs)
        for name, field in cls.model_fields.items():
            place = f"{cls.__name__}.{name}"
            field.metadata = [
                _complete(place, field, part, affects_scores) if isinstance(part, _Statement) else part
                for part in field.metadata
            ]
            if cls.only_options and (facts_of(field) is None or not field.description):
                raise TypeError(f"{place} is not declared: annotate it with Option(...)")


def _complete(place: str, field: FieldInfo, stated: _Statement, default: bool | None) -> OptionFacts:
    affects_scores = default if stated.affects_scores is None else stated.affects_scores
    if affects_scores is None:
        raise TypeError(f"{place} does not say whether it affects scores: say so there, or for its class")
    holds = stated.holds
    if holds is None:
        if _holds_text(field.annotation):
            raise TypeError(f"{place} may hold text: say what it is, holds=text, path, command, address or secret")
        table = table_of(field)
        secret = table is not None and any(option.facts.may_hold_secret for option in declarations(table))
        holds = "secret" if secret else "text"
    if stated.others["by_run"] and holds != "text":
        raise TypeError(f"a run of a deployment cannot set a path or a secret: {place}")
    return OptionFacts(holds=holds, affects_scores=affects_scores, **stated.others)


def _holds_text(annotation: Any) -> bool:
    """Return whether a value may be text of any content, which the options of a table declare themselves."""
    if get_origin(annotation) is Literal or annotation in (NoneType, Ellipsis):
        return False
    if get_origin(annotation) is Annotated:
        return _holds_text(get_args(annotation)[0])
    if parts := get_args(annotation):
        return any(_holds_text(part) for part in parts)
    closed = (OptionGroup, bool, int, float, Enum)
    return not (isinstance(annotation, type) and issubclass(annotation, closed))


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


def facts_of(field: FieldInfo) -> OptionFacts | None:
    """Return the facts of an option; None for other fields."""
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
    content: Mapping[str, object],
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


def find_secret_references(options: OptionGroup, without: tuple[str, ...] = ()) -> tuple[str, ...]:
    """Return the references to secrets, `env:NAME` or `block:NAME`, in the order of the options.

    Args:
        options: Options to search, with those of the tables in them.
        without: Names of tables to leave out.
    """
    found: list[str] = []

    def note(facts: OptionFacts, value: Any) -> Any:
        if facts.may_hold_secret:
            found.extend(text for text in _texts_in(value) if text.startswith(("env:", "block:")))
        return value

    map_values(options.model_dump(mode="json", exclude_defaults=True, exclude=set(without)), type(options), note)
    return tuple(dict.fromkeys(found))


def _texts_in(value: Any) -> Iterator[str]:
    """Yield the texts of a value, also those in the tables of a plugin's arguments."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for part in value.values():
            yield from _texts_in(part)
    elif isinstance(value, list | tuple):
        for part in value:
            yield from _texts_in(part)


def variable_name(place: Sequence[str]) -> str:
    """Return the environment variable of an option.

    >>> variable_name(("judge", "backend"))
    'ASSAY_JUDGE__BACKEND'
    """
    return ENVIRONMENT_PREFIX + "__".join(place).upper()
