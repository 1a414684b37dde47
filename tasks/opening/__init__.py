"""Open the judges, embedders and recognizers of a run: cached, counted in a dry run, or asked again."""
