"""Worked examples: cases with the answers of a judge and the score that they must give."""
