"""Diagnosis of rows: what went well or wrong with an answer, from verdicts that a run has already."""
