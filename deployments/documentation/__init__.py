"""The verb `docs`: the pages of the documentation, which the wheel brings along."""
