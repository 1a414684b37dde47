"""Judge questions of which each has a module of its own; the others are in `metric_core.judge_questions`."""
