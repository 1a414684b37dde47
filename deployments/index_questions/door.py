"""Declare the verb `questions`."""

from tasks.plugins.installed_verb import InstalledVerb

QUESTIONS = InstalledVerb(
    "Write questions from an index, and keep them up to date.",
    "deployments.index_questions.questions_verb:app",
    heading="Evaluate",
    keeps_work=True,
)
