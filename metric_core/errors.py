"""Define the errors that are shown to users.

    AssayError                      something the user can fix; the message says how
    ├── ConfigError                 an option, a configuration file or a combination of both
    │   ├── UnknownMetricError      a metric name that is not registered
    │   ├── MetricParameterError    an unknown metric parameter, or an invalid value
    │   ├── MetricError             a metric that raises, or violates its declarations
    │   └── PluginError             a plugin that is missing, has the wrong type, or raises
    ├── SourceError                 the data: an unreadable file, a missing column
    │   └── BadRowsError            rows that are not valid samples, with their row numbers
    ├── MissingDependencyError      a missing optional package; the message has the command that installs it
    ├── JudgeError                  an unusable judge
    ├── EmbedderError               an unusable embedder, or a text that it rejects
    ├── RunFolderError              a run folder that cannot be written, or a folder that is not a run
    ├── BudgetSpentError            a run that stopped because its budget is spent; it can be continued
    ├── FailedCellsError            a finished run in which too many cells failed, or none has a value
    └── NotComparableError          runs that a gate cannot compare: more differs than the system under test

Every message says what was received, what was expected and what to do.
"""

from collections.abc import Iterable

from metric_core.parsing.control_characters import escape_controls


class AssayError(Exception):
    """Base class of errors that the user can fix; shown without a traceback."""

    def __str__(self) -> str:
        """Return the message, which may quote data, with control characters as escapes."""
        return escape_controls(super().__str__())


class ConfigError(AssayError):
    """An invalid option or configuration file."""


class UnknownMetricError(ConfigError):
    """A metric name that is not registered.

    Args:
        suggestions: Registered names close to it, closest first.
    """

    def __init__(self, name: str, suggestions: Iterable[str] = ()) -> None:
        nearest = ", ".join(suggestions)
        hint = f"Did you mean {nearest}?" if nearest else "Run `assay metrics` for a list."
        super().__init__(f"unknown metric {name!r}. {hint}")
        self.name = name


class MetricParameterError(ConfigError):
    """An unknown metric parameter, or an invalid value for one."""


class MetricError(ConfigError):
    """A metric that raises, reads what it does not declare, or returns what it does not declare."""


class PluginError(ConfigError):
    """A plugin that is missing, has the wrong type, or raises."""


class SourceError(AssayError):
    """Data that cannot be read, or that lacks a column that the chosen metrics need."""


class BadRowsError(SourceError):
    """Rows that are not valid samples, in a run configured to stop at them."""


class MissingDependencyError(AssayError):
    """An optional package that is not installed.

    Args:
        package: Import name of the missing package.
        purpose: Feature that needs the package.
        install: Command that installs the package.
    """

    def __init__(self, package: str, purpose: str, install: str) -> None:
        super().__init__(f"{purpose} needs the package {package!r}, which is not installed. Install it with: {install}")
        self.package = package


class JudgeError(AssayError):
    """A judge that cannot be used at all (a single unusable reply is a failed cell instead)."""


class EmbedderError(AssayError):
    """An embedder that cannot be used, or that rejects a text."""


class RunFolderError(AssayError):
    """A run folder that cannot be written, or a folder that is not a run."""


class StorageError(AssayError):
    """A store of tables or baselines cannot be reached, or refuses a request."""


class BudgetSpentError(AssayError):
    """A run that stopped because its budget is spent. All of its answers are cached, so that it can be continued."""


class FailedCellsError(AssayError):
    """A finished run in which too many cells failed, or none has a value. Its folder is complete and can be opened.

    Args:
        failures: A sentence for each metric with too many failed cells.
    """

    def __init__(self, folder: str, failures: Iterable[str]) -> None:
        self.folder = folder
        self.failures = tuple(failures)
        listed = "\n".join(f"  {failure}" for failure in self.failures)
        super().__init__(
            f"the run in {folder} is finished, but has too few scores:\n{listed}\n"
            f"The reasons are in its report. `assay rerun {folder}` asks again where cells failed; fail_on_failed "
            "(--fail-on-failed SHARE) sets the share of failed cells that is too much."
        )


class NotComparableError(AssayError):
    """Two runs that a gate cannot compare, because they differ in more than the system under test.

    Args:
        a: Baseline run.
        b: Run under test.
        reasons: Descriptions of the differences.
    """

    def __init__(self, a: str, b: str, reasons: Iterable[str]) -> None:
        self.reasons = tuple(reasons)
        listed = "\n".join(f"  {reason}" for reason in self.reasons)
        super().__init__(
            f"{a} and {b} are not comparable, so the gate was not applied:\n{listed}\n"
            "Evaluate both with the same settings, or apply the gate anyway with --allow-different."
        )
