"""One reader a family of formats: rows as they are in the source, not yet checked."""
