"""Several runs compared together: which of them may be the best, at what cost, and what each loses."""
