"""User-facing descriptions of the metrics: formula, worked example, and differences from other definitions."""
