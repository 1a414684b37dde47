"""Properties that hold for every metric, over generated evidence."""
