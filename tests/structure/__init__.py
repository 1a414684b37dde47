"""Tests of the house itself: names, sizes, imports, and what no file may mention."""
