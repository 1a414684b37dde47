"""Watch evaluations that nobody starts by hand: one chain for every trigger, incidents and alerts."""
