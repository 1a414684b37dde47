"""Read relevance judgments: grades of passages for a user question, from a column or from a file of qrels."""
