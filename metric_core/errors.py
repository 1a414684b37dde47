"""The errors a user can meet.

    AssayError                      something the user can put right; the message says how
    ├── ConfigError                 an option, a configuration file or a combination of both
    │   ├── UnknownMetricError      a metric name nobody registered
    │   ├── MetricParameterError    a parameter that the metric does not have, or a value it can not take
    │   └── PluginError          an object of the user's own: not there, of another kind than wanted, or raising
    ├── SourceError                 the data: a file that can not be read, a column that is missing
    │   └── BadRowsError            rows that are not samples, with their numbers
    ├── MissingDependencyError      an optional package; the message has the line that installs it
    ├── JudgeError                  the judge can not be used at all
    ├── EmbedderError               the embedder can not be used, or not for a text
    ├── RunFolderError              a run folder that can not be written or is not one
    └── NotComparableError               runs that differ in more than the system under test, where a gate compares them

Every message says what was got, what was wanted and what to do.
"""

from collections.abc import Iterable


class AssayError(Exception):
    """Base of every error that the user can put right; shown without a traceback."""


class ConfigError(AssayError):
    """An option or a configuration file that can not be used."""


class UnknownMetricError(ConfigError):
    """A metric name that is not registered.

    Args:
        name: the name as given.
        suggestions: registered names close to it, nearest first.
    """

    def __init__(self, name: str, suggestions: Iterable[str] = ()) -> None:
        nearest = ", ".join(suggestions)
        hint = f"Did you mean {nearest}?" if nearest else "`assay metrics` lists the known ones."
        super().__init__(f"unknown metric {name!r}. {hint}")
        self.name = name


class MetricParameterError(ConfigError):
    """A metric parameter that does not exist or a value that it can not take."""


class PluginError(ConfigError):
    """An object of the user's own that is not there, is not what it is used as, or raises."""


class SourceError(AssayError):
    """Data that can not be read, or that lacks what the chosen metrics need."""


class BadRowsError(SourceError):
    """Rows that are not samples while the run was told to stop at them."""


class MissingDependencyError(AssayError):
    """An optional package that is not installed.

    Args:
        package: the import name that is missing.
        purpose: what it is needed for.
        install: the command that installs it.
    """

    def __init__(self, package: str, purpose: str, install: str) -> None:
        super().__init__(f"{purpose} needs the package {package!r}, which is not installed. Install it with: {install}")
        self.package = package


class JudgeError(AssayError):
    """A judge that can not be used at all (as opposed to one unusable reply, which is a failed cell)."""


class EmbedderError(AssayError):
    """An embedder that can not be used, or that refuses a text."""


class RunFolderError(AssayError):
    """A run folder that can not be written, or a folder that is not a run."""


class NotComparableError(AssayError):
    """Two runs that a gate is to compare, but that differ in more than the system under test.

    Args:
        a: the baseline.
        b: the run.
        reasons: what differs.
    """

    def __init__(self, a: str, b: str, reasons: Iterable[str]) -> None:
        listed = "\n".join(f"  {reason}" for reason in reasons)
        super().__init__(
            f"{a} and {b} are not like for like, so a gate can not compare them:\n{listed}\n"
            "Evaluate both the same way, or hold them against it all the same with --allow-different."
        )
