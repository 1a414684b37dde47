"""The verb `questions`: write questions from an index, and keep them up to date."""
