"""Tests of the public package `rag_assay`."""
