"""Declare the verb `index`."""

from tasks.plugins.installed_verb import InstalledVerb

INDEX = InstalledVerb(
    "Check a rebuilt index against its earlier version.", "deployments.index_check.index_verb:app", heading="Evaluate"
)
