"""Recipients of alerts that come in by the door of plugins."""
