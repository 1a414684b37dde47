"""Code that the verbs of the command line share."""
