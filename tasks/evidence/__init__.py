"""From stage tables to the evidence that metrics read."""
