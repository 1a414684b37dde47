"""Tests of prompts: fences, templates, languages, and resistance to hostile texts."""
