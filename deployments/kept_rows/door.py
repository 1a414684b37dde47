"""Declare the verb `keep`."""

from tasks.plugins.installed_verb import InstalledVerb

KEEP = InstalledVerb(
    "Keep rows that went wrong in a test set, until rebuilds get them right.",
    "deployments.kept_rows.keep_verb:app",
    heading="Evaluate",
)
