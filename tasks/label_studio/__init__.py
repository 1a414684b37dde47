"""Label rows and claims in Label Studio."""
