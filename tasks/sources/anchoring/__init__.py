"""Find spans of evidence in the chunks of an index: exactly, in pieces, or changed."""
