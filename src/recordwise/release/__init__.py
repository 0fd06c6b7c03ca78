"""From exact totals to published tables: noise is drawn, keys are selected, and a release is saved, read back and verified."""
