"""What every stage may rely on while it runs: credentials, progress, cancellation."""
