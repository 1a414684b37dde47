"""Declare the verb `keep`."""

from tasks.plugins.installed_verb import InstalledVerb

KEEP = InstalledVerb(
    "Keep rows that went wrong until rebuilds get them right.",
    "deployments.kept_rows.keep_verb:app",
    heading="Evaluate",
)
