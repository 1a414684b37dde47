"""What a run retrieved or stated that its askers may not see."""
