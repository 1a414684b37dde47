"""What is found out about passages that disagree: in a run, and within an index."""
