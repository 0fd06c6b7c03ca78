"""Coverage of every interval column, measured through whole releases (ours, of no paper)."""
