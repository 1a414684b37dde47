"""Labels, calibrations and bias-corrected means of finished runs."""
