"""Handle the event that an index was rebuilt."""
