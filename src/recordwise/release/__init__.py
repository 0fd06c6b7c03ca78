"""From exact totals to published tables: draws noise, selects keys, and saves, reloads and verifies releases."""
