"""Declare the verb `job`."""

from tasks.plugins.installed_verb import InstalledVerb

JOB = InstalledVerb(
    "Run a job of eval-hub: JobSpec in, JobResults out.",
    "deployments.eval_hub.job_verb:app",
    heading="Schedule",
    keeps_work=True,
)
