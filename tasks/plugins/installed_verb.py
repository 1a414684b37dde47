"""Declare a verb of the command line that a package brings."""

from dataclasses import dataclass

from metric_core.errors import PluginError
from tasks.plugins.load_object import Group, installed_names, load_object


@dataclass(frozen=True, slots=True)
class InstalledVerb:
    """A verb of an installed package; its entry point has its name.

    Args:
        summary: First sentence of its help, which lists it; of a form, what the help of the verb says of it.
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


def installed_form(name: str) -> InstalledVerb | None:
    """Return the further form of a verb, for arguments that the verb does not take; None if there is none.

    Its entry point has the name of the verb.

    Raises:
        PluginError: The form cannot be loaded.
    """
    if name not in installed_names(Group.VERB_FORMS):
        return None
    found = _load(name, Group.VERB_FORMS)
    if isinstance(found, PluginError):
        raise found
    return found


def _load(name: str, group: Group = Group.VERBS) -> InstalledVerb | PluginError:
    try:
        verb = load_object(group, name).obj
    except PluginError as error:
        return error
    if not isinstance(verb, InstalledVerb):
        return PluginError(f"the verb {name} is {verb!r}, wanted an InstalledVerb of rag_assay.plugins")
    return verb
