"""Agreement of the judge with people."""
