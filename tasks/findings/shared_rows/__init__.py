"""The rows that the means of a run have in common."""
