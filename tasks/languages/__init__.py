"""Scripts and languages of texts."""
