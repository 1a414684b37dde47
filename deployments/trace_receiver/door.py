"""Declare the verb `traces`."""

from tasks.plugins.installed_verb import InstalledVerb

TRACES = InstalledVerb(
    "Receive traces of a running system.", "deployments.trace_receiver.traces_verb:app", heading="Servers and storage"
)
