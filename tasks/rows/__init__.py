"""Store the results of stages row by row, and find them again by the content that they were computed from."""
