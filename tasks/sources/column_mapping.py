"""Map columns of a source to columns of a sample: by the user's map, then by name, then by alias."""

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from shlex import quote

from metric_core.columns import COLUMN_ALIASES, COLUMNS, ID_COLUMNS, MESSAGES, RESPONSE, RETRIEVED_CONTEXTS, USER_INPUT
from metric_core.errors import ConfigError, SourceError
from tasks.options.source_options import SourceOptions
from tasks.runtime.wording import find_lookalike, quote_names, suggest_nearest, suggest_nearest_column
from tasks.sources.cells.messages import find_conversation_column
from tasks.sources.cells.paths import parse_path
from tasks.sources.nested_columns import NestedColumns, list_paths_of
from tasks.sources.readers.protocol import RowSource

_MOST_OTHER_NAMES = 1000
_MEANINGFUL = frozenset(name.casefold() for name in (*COLUMNS, *COLUMN_ALIASES, *ID_COLUMNS))


@dataclass(frozen=True, slots=True)
class Resolution:
    """The source columns of the columns of a sample.

    Args:
        bindings: Mapping from sample column to source column, in the order of COLUMNS.
        shadowed: Mapping from source column to the sample column that is read from another source column instead.
    """

    bindings: Mapping[str, str]
    shadowed: Mapping[str, str]

    @property
    def warnings(self) -> list[str]:
        """One sentence per column that is not read as its name suggests."""
        return [
            f"column {source!r} is kept in extras: {column!r} is read from {self.bindings[column]!r}"
            for source, column in self.shadowed.items()
        ]


class SeenColumns:
    """The columns of a source found so far.

    In formats without a schema, every row can have new columns. All meaningful names are stored; of the others only
    the first ones, for messages, so that a log with generated keys does not fill the memory.
    """

    def __init__(self, options: SourceOptions) -> None:
        configured = {options.id_column, *options.column_map} - {None}
        self._configured_names = frozenset(configured)
        self.names: dict[str, None] = {}

    def add(self, names: Iterable[str]) -> list[str]:
        """Record a row's columns, and return the new ones that are meaningful."""
        meaningful = []
        for name in names:
            if name not in self.names:
                known = name in self._configured_names or name.casefold() in _MEANINGFUL
                if known:
                    meaningful.append(name)
                if known or len(self.names) < _MOST_OTHER_NAMES:
                    self.names[name] = None
        return meaningful


def resolve_columns(names: Iterable[str], column_map: Mapping[str, str]) -> Resolution:
    """Bind sample columns to source columns.

    The map takes precedence, then a column with the name of the sample column, then an alias, in the order of
    COLUMN_ALIASES. A name with equal case takes precedence over one that differs in case. A source column is used once.

    >>> resolve_columns(["Question", "answer", "response"], {}).bindings
    {'user_input': 'Question', 'response': 'response'}
    >>> resolve_columns(["gold", "reference"], {"gold": "reference"}).shadowed
    {'reference': 'reference'}
    """
    every = list(dict.fromkeys(names))
    bound = {target: source for source, target in column_map.items() if source in every}
    reserved = set(column_map.values())
    free = [name for name in every if name not in column_map]
    shadowed: dict[str, str] = {}
    for known, column in (*((column, column) for column in COLUMNS), *COLUMN_ALIASES.items()):
        for name in sorted(_matching_names(known, free), key=lambda name: name != known):
            if column not in bound and column not in reserved:
                bound[column] = name
            elif bound.get(column) != name and column in bound:
                shadowed[name] = column
    return Resolution({column: bound[column] for column in COLUMNS if column in bound}, shadowed)


def find_lookalikes(names: Iterable[str], resolution: Resolution, options: SourceOptions) -> dict[str, str]:
    """Return the source columns that are probably columns of a sample by their names, but are not read as such.

    >>> found = resolve_columns(["question", "context", "note"], {})
    >>> find_lookalikes(["question", "context", "note"], found, SourceOptions())
    {'context': 'retrieved_contexts'}
    """
    used = {*resolution.bindings.values(), *resolution.shadowed, *options.column_map, options.id_column}
    free = [name for name in names if name not in used]
    guessed: dict[str, str] = {}
    for column in COLUMNS:
        if column not in resolution.bindings and column not in options.column_map.values():
            name = find_lookalike(column, [name for name in free if name not in guessed])
            if name is not None:
                guessed[name] = column
    return guessed


def describe_lookalikes(guessed: Mapping[str, str]) -> Iterator[str]:
    """Yield a sentence for each column that looks like one of a sample."""
    for name, column in guessed.items():
        yield f"column {name!r} looks like {column}: --column-map {_quote_pairs({name: column})}"


def find_id_column(names: Iterable[str], source_name: str, options: SourceOptions) -> str | None:
    """Return the source column of the ids; None if ids are derived from the content.

    Raises:
        SourceError: The options name a column that the source does not have.
    """
    every = list(names)
    if options.id_column is not None:
        if options.id_column and options.id_column not in every:
            near = suggest_nearest(options.id_column, every)
            hint = f" Did you mean {near!r}?" if near else ""
            raise SourceError(
                f"{source_name} has no id_column {options.id_column!r}; it has: {quote_names(every)}.{hint}"
            )
        return options.id_column or None
    free = [name for name in every if name not in options.column_map]
    for known in ID_COLUMNS:
        matches = sorted(_matching_names(known, free), key=lambda name: name != known)
        if matches:
            return matches[0]
    return None


def required_by(required: Mapping[str, tuple[str, ...]]) -> dict[str, tuple[str, ...]]:
    """Return a mapping from sample column to the metrics that need it.

    >>> required_by({"recall": ("reference",), "accuracy": ("reference", "response")})
    {'reference': ('recall', 'accuracy'), 'response': ('accuracy',)}

    Raises:
        ConfigError: A metric needs a column that samples do not have.
    """
    metrics: dict[str, tuple[str, ...]] = {}
    for metric, needed in required.items():
        for column in needed:
            if column not in COLUMNS:
                raise ConfigError(f"{metric} needs the column {column!r}; samples have only: {quote_names(COLUMNS)}")
            metrics[column] = (*metrics.get(column, ()), metric)
    return metrics


def check_mapped(names: Iterable[str], source: RowSource, options: SourceOptions) -> None:
    """Check that the source has all columns and paths of the column map.

    Raises:
        SourceError: One is missing; the message lists the existing ones.
    """
    every = list(names)
    for name in options.column_map:
        if name in every:
            continue
        if isinstance(source, NestedColumns) and parse_path(name) is not None:
            raise SourceError(_unknown_path(name, source))
        near = suggest_nearest(name, every)
        hint = f" Did you mean {near!r}?" if near else ""
        raise SourceError(f"{source.name} has no column {name!r} to map; it has: {quote_names(every)}.{hint}")


def check_required(
    names: Iterable[str],
    resolution: Resolution,
    metrics: Mapping[str, tuple[str, ...]],
    source_name: str,
    brought: Collection[str] = (),
) -> None:
    """Check that the source has all columns that the metrics need.

    Args:
        names: Columns of the source.
        metrics: Mapping from sample column to the metrics that need it.
        source_name: Name of the source in messages.
        brought: Sample columns that come with another one.

    Raises:
        SourceError: A column is missing; the message names the metrics, the existing columns and how to map one.
    """
    found = {*resolution.bindings, *brought}
    missing = [column for column in COLUMNS if column in metrics and column not in found]
    if not missing:
        return
    every = list(names)
    used = set(resolution.bindings.values())
    near = {column: suggest_nearest_column(column, [name for name in every if name not in used]) for column in missing}
    lines = [
        f"  {column!r}, for {', '.join(metrics[column])}"
        + (f" (did you mean its column {near[column]!r}?)" if near[column] else "")
        for column in missing
    ]
    guessed = {name: column for column, name in near.items() if name} or {"its name here": missing[0]}
    raise SourceError(
        f"{source_name} lacks columns that the metrics need:\n"
        + "\n".join(lines)
        + f"\nIt has: {quote_names(every)}. If one of these is meant, map it: {_ways_to_map(guessed)}"
        + _conversation_hint(every)
    )


def check_known(names: Iterable[str], resolution: Resolution, source: RowSource, options: SourceOptions) -> None:
    """Check that the source has at least one column of a sample.

    Raises:
        SourceError: There is none; the message lists the existing columns and how to map them.
    """
    if resolution.bindings:
        return
    every = list(names)
    inside = {path.rpartition(".")[2]: path for path in list_paths_of(source) if "[" not in path}
    found = find_lookalikes([*every, *inside], resolution, options)
    guessed = {name if name in every else inside[name]: column for name, column in found.items()}
    for column in (USER_INPUT, RESPONSE, RETRIEVED_CONTEXTS):
        free = [name for name in every if name not in guessed]
        if column not in guessed.values() and (near := suggest_nearest_column(column, free)) is not None:
            guessed[near] = column
    guessed = guessed or {every[0]: USER_INPUT}
    raise SourceError(
        f"{source.name} has none of the columns that a sample has ({quote_names(COLUMNS)}); "
        f"it has: {quote_names(every)}. "
        f"Map them, for example: {_ways_to_map(guessed)}" + _conversation_hint(every)
    )


def _unknown_path(path: str, source: NestedColumns) -> str:
    paths = source.list_paths()
    first = str((parse_path(path) or ("",))[0])
    inside = [each for each in paths if str((parse_path(each) or (each,))[0]) == first]
    near = suggest_nearest(path, inside or paths) or suggest_nearest(path, paths)
    hint = f" Did you mean {near!r}?" if near else ""
    return f"{source.name} has no value at the path {path!r}; it has: {quote_names(inside or paths)}.{hint}"


def _conversation_hint(names: Iterable[str]) -> str:
    column = find_conversation_column(names)
    if column is None:
        return ""
    return f"\nIts column {column!r} may hold conversations; to read them: {_ways_to_map({column: MESSAGES})}"


def _ways_to_map(guessed: Mapping[str, str]) -> str:
    return f"column_map = {dict(guessed)}, or --column-map {_quote_pairs(guessed)}"


def _quote_pairs(guessed: Mapping[str, str]) -> str:
    pairs = ",".join(f"{name}={column}" for name, column in guessed.items())
    return quote(pairs.encode(errors="backslashreplace").decode())  # a name may contain a lone surrogate


def _matching_names(known: str, names: Iterable[str]) -> list[str]:
    return [name for name in names if name.casefold() == known]
