"""Read the cells of raw rows: ids, texts, messages, passages and judgments."""
