"""Effects of planted changes on the verdicts of the judge."""
