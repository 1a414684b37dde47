"""The parts of a configuration that have a file or a section of their own."""
