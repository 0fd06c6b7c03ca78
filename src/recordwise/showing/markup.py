"""HTML and SVG elements. What is put into one is escaped unless it is markup already, so that no name can become markup."""

from collections.abc import Iterable, Sequence
from html import escape


class Html(str):
    """Text that is markup already."""

    __slots__ = ()

    def _repr_html_(self) -> str:
        return str(self)


def element(name: str, /, *children: object, **attributes: object) -> Html:
    """An element; ``text_anchor`` is written text-anchor, ``class_`` class. None and False leave an attribute out, True is bare."""
    written = "".join(_attribute(key, value) for key, value in attributes.items())
    if name in VOID and not children:
        return Html(f"<{name}{written}>")
    return Html(f"<{name}{written}>{joined(children)}</{name}>")


VOID = frozenset({"input", "meta", "br", "hr", "col"})


def _attribute(key: str, value: object) -> str:
    if value is None or value is False:
        return ""
    name = key.removesuffix("_").replace("_", "-")
    return f" {name}" if value is True else f' {name}="{escape(_text(value), quote=True)}"'


def _text(value: object) -> str:
    """Coordinates need no more than hundredths of a point."""
    return f"{value:.2f}".rstrip("0").rstrip(".") if isinstance(value, float) else str(value)


def joined(children: Iterable[object]) -> Html:
    """Several in a row, each escaped unless it is markup."""
    return Html(
        "".join(child if isinstance(child, Html) else escape(_text(child)) for child in children if child is not None)
    )


def preview_table(headings: Sequence[str], rows: Iterable[Sequence[object]]) -> Html:
    """A plain table with a heading line."""
    head = element("tr", *(element("th", name, scope="col") for name in headings))
    body = [element("tr", *(element("td", value) for value in row)) for row in rows]
    return element("table", element("thead", head), element("tbody", *body))
