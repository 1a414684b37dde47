"""The engine against a plain reference: equal tables however a run is split, interrupted or repeated."""
