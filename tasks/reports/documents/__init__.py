"""Findings as blocks of text and tables, and their layout as Markdown and as HTML."""
