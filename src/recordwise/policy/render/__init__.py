"""A policy as people read it: LaTeX, plain text, sentences, and the picture a notebook shows."""
