"""Find the references to secrets in options."""

from typing import Any

from tasks.options.option import OptionFacts, OptionGroup, map_values


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
