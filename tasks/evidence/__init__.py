"""Turn stage tables into the evidence that metrics read."""
