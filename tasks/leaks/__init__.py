"""Leaks of a run: passages and claims that its askers may not see."""
