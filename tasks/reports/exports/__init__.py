"""Give the scores of a run to other programs: to an OTLP endpoint, and as files that observability products import."""
