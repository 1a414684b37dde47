"""Tests of the repository itself: names, words, sizes, imports, and contents that no file may have."""
