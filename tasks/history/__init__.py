"""The history: a catalogue of finished runs, kept by evaluation name, and of incidents."""
