"""Find the sinks of results, built-in and installed ones, by their names."""

from metric_core.errors import ConfigError, PluginError
from metric_core.parsing.suggestions import suggest_names
from tasks.plugins.load_object import Group, installed_names, load_object
from tasks.reports.exports.send_scores import OPENINFERENCE, OTLP
from tasks.reports.exports.sink import Sink

_BUILT_IN = {"otlp": OTLP, "openinference": OPENINFERENCE}


def find_sink(name: str) -> Sink:
    """Return the sink with a name.

    Raises:
        ConfigError: There is none, or it cannot be loaded.
    """
    if name in _BUILT_IN:
        return _BUILT_IN[name]
    installed = installed_names(Group.SINKS)
    if name not in installed:
        known = sorted((*_BUILT_IN, *installed))
        near = suggest_names(name, known) or known
        raise ConfigError(f"results cannot be sent to {name!r}, but to {' or '.join(near)}")
    found = load_object(Group.SINKS, name).obj
    if not isinstance(found, Sink):
        raise PluginError(f"the sink {name} is {found!r}, wanted a Sink of rag_assay.plugins")
    return found
