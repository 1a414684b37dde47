"""The speed of the judge servers."""
