"""Declare the verb `docs`."""

from tasks.plugins.installed_verb import InstalledVerb

DOCS = InstalledVerb(
    "List the pages of the documentation, or print one.", "deployments.documentation.docs_verb:app", heading="Look"
)
