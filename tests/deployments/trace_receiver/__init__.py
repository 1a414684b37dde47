"""The receiver of traces."""
