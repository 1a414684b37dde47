"""The anchor: rows that never change, judged in every run."""
