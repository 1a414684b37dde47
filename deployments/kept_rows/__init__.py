"""The verb `keep`: put rows that a run got wrong into a test set, and keep their states up to date."""
