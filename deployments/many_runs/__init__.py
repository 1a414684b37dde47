"""Further forms of `assay compare` and `assay run`: several runs at once."""
