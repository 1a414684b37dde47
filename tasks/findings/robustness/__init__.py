"""Rows, parts and judge that the outcomes of a comparison and of a gate hang on."""
