"""Blocks, tables and words that findings and reports share."""
