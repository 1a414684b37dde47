"""Declare the verb `label-studio`."""

from tasks.plugins.installed_verb import InstalledVerb

LABEL_STUDIO = InstalledVerb(
    "Label rows or claims of a run in Label Studio.", "deployments.label_studio.label_studio_verb:app", heading="People"
)
