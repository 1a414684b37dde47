"""Readers, one per family of formats, that yield rows as they are in the source, within limits and unchecked."""
