"""Declare the forms of verbs that are about several runs."""

from tasks.plugins.installed_verb import InstalledVerb

COMPARE = InstalledVerb(
    "With three or more runs (`assay compare A B C --html many.html`): which may be the best, at what cost. "
    "`assay docs compare-many` explains it.",
    "deployments.many_runs.compare_verb:app",
)
MATRIX = InstalledVerb(
    "With `--matrix matrix.toml`: evaluate every combination of the values in its table [axes], and compare the runs. "
    "`assay docs compare-many` explains it.",
    "deployments.many_runs.matrix_verb:app",
    keeps_work=True,
)
