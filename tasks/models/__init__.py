"""Open the judges, embedders and recognizers of a run."""
