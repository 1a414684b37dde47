"""Questions that are written from the chunks of an index: their kinds, and how each is checked."""
