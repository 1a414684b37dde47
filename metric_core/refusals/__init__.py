"""Forms of sentences that give no answer, by language."""
