"""A policy for people to read: LaTeX, plain text, sentences, and the chart shown in a notebook."""
