"""The receipt of an index: digests and counts by which two versions of it are compared before anything is evaluated."""
