"""The verb of Label Studio."""
