"""The page saved with a release (report.html): its questions, sentences, charts, tables and script."""
