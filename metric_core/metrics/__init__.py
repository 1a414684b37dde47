"""One file a metric family: pure functions and what they declare."""
