"""Marks on a page: elements that escape what they hold, logarithmic axes and lines. Knows nothing of privacy."""

from recordwise.showing.axis import LogAxis, number_text, size_text
from recordwise.showing.lines import Line, path, small_chart
from recordwise.showing.markup import Html, element, joined, preview_table

__all__ = [
    "Html",
    "Line",
    "LogAxis",
    "element",
    "joined",
    "number_text",
    "path",
    "preview_table",
    "size_text",
    "small_chart",
]
