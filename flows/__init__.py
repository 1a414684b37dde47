"""Which stages, in which order, for which rows."""
