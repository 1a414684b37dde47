"""Agreement of the judges of a panel."""
