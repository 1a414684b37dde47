"""Alerts: what they say, who receives them, and how they are delivered."""
