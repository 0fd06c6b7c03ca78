"""Output formats of a release: one module for each, and a registry that finds them by name."""

from recordwise.release.formats.format import Format
from recordwise.release.formats.registry import DEFAULT_FORMATS, formats_named, known_formats

__all__ = ["DEFAULT_FORMATS", "Format", "formats_named", "known_formats"]
