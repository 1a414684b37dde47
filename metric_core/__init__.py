"""What a score means: records, Arrow schemas, the registry of metrics and their arithmetic. No I/O, no framework."""
