"""Metrics, judges, embedders and recognisers of the user's own: found by name, held to the protocols of ours."""
