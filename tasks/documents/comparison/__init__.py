"""Words and tables on two runs."""
