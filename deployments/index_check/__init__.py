"""The verb `index`: check an index before anything is evaluated."""
