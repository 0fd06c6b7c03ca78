"""Coverage and error of fitted columns, measured through whole releases (ours, of no paper)."""
