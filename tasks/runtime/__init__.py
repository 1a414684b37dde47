"""Services that every stage may use while it runs: credentials, progress, cancellation, retries, atomic files."""
