"""What a run would reuse and what it would ask."""
