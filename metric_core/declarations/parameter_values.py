"""The values of the parameters of a metric."""

from typing import Any


class ParameterValues(dict[str, Any]):
    """The complete parameters of a request; reading one that the metric does not declare is an error.

    >>> ParameterValues({"most": 5}).get("least", 1)
    Traceback (most recent call last):
        ...
    KeyError: "the metric has no parameter 'least'; it has: most"
    """

    def __missing__(self, name: str) -> Any:
        """Raise KeyError with the names that exist."""
        raise KeyError(f"the metric has no parameter {name!r}; it has: {', '.join(self) or 'none'}")

    def get(self, name: str, default: Any = None) -> Any:
        """Return a declared parameter; a default would hide a misspelled name."""
        del default
        return self[name]
