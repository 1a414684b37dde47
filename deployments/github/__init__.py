"""The GitHub Action: evaluate answers in a pull request, apply a gate, and keep one comment up to date."""
