"""What belongs to the event that an index was rebuilt."""
