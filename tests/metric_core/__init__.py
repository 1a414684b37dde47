"""What scores mean: metrics, records, prompts."""
