"""Monitor evaluations: the same steps for every trigger, with alarms, incidents and alerts."""
