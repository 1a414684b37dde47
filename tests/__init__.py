"""Tests of rag-assay."""
