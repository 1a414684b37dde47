"""Prompts: fences, templates, languages, and what hostile texts can not do to them."""
