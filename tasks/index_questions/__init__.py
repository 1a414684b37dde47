"""Write questions from the chunks of an index, check them, and keep them from one version of the index to the next."""
