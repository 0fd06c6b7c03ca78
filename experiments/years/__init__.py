"""Five years of generated establishments from one plan: losses over the years, errors of levels and of changes."""
