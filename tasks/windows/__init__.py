"""Windows: the rows of a shard that the stages pass on to each other before a table is complete."""
