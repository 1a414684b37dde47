"""What `evaluate`, `rerun` and `calibrate` share: stages, shards, runners, and what is told of a run."""
