"""Tests of judges that only verify."""
