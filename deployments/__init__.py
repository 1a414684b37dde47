"""Who calls a flow: a terminal, a clock, an event, another system."""
