"""Opens the judge, the embedder and the recognizer that a run uses."""
