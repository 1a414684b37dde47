"""The words of texts: stems, numerals, negations and mutually exclusive words."""
