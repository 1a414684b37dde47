"""The callers of flows: the command line, schedules, events, and other systems."""
