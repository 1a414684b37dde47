"""Declare a verb of the command line that a package brings."""

from dataclasses import dataclass

from metric_core.errors import PluginError
from tasks.plugins.load_object import Group, installed_names, load_object


@dataclass(frozen=True, slots=True)
class InstalledVerb:
    """A verb of an installed package; its entry point has its name.

    Args:
        summary: First sentence of its help, which lists it.
        app: `module:attribute` of its `typer.Typer`, imported when the verb is called or its help is shown. So the
            module of the declaration should import little.
        heading: Heading of the help under which it is listed.
        keeps_work: True if an interrupted call continues from what is stored.
    """

    summary: str
    app: str
    heading: str = "Installed"
    keeps_work: bool = False


def installed_verbs() -> dict[str, InstalledVerb | PluginError]:
    """Return the verbs of installed packages by name; in place of one that cannot be loaded, the error."""
    return {name: _load(name) for name in sorted(installed_names(Group.VERBS))}


def _load(name: str) -> InstalledVerb | PluginError:
    try:
        verb = load_object(Group.VERBS, name).obj
    except PluginError as error:
        return error
    if not isinstance(verb, InstalledVerb):
        return PluginError(f"the verb {name} is {verb!r}, wanted an InstalledVerb of rag_assay.plugins")
    return verb
