"""The page of one experiment: the paper's statements beside our results, the figures inside it, nothing fetched from anywhere."""

import base64
from collections.abc import Sequence
from html import escape

from experiments.frame.claim import Claim
from experiments.frame.reproduction import Picture, Reproduction, Row

STYLE = """
body{font:1rem/1.5 system-ui,sans-serif;color:#1a1a1a;background:#fff;max-width:70rem;margin:0 auto;padding:1.5rem}
h1{line-height:1.2;margin-bottom:.2rem} h2{margin-top:2.2rem} .source{color:#444;margin-top:0}
.scroll{overflow-x:auto} table{border-collapse:collapse;width:100%;margin:.5rem 0}
caption{text-align:left;color:#444;padding-bottom:.4rem}
th,td{border-bottom:1px solid #bbb;padding:.45rem .6rem;text-align:left;vertical-align:top}
thead th{border-bottom:2px solid #333} td.number{text-align:right;font-variant-numeric:tabular-nums}
figure{margin:1rem 0} img{max-width:100%;height:auto} figcaption{color:#333;max-width:60rem}
.yes,.no,.open{font-weight:600;white-space:nowrap} .yes{color:#00543d} .no{color:#8f2f00} .open{color:#444}
a{color:#004d80} :focus-visible{outline:3px solid #0072b2;outline-offset:2px}
"""
MARKS = {True: ("yes", "✓"), False: ("no", "✗"), None: ("open", "?")}


def page(done: Reproduction, *, seconds: float | None = None) -> str:
    """The whole page as text."""
    parts = [
        f"<h1>{escape(done.title)}</h1>",
        f'<p class="source">{escape(done.source)}</p>',
        "<h2>The paper's statements and our results</h2>",
        claims_table(done.claims),
        "<h2>Figures</h2>" if done.pictures else "",
        *(picture_block(picture) for picture in done.pictures),
        *(f"<h2>{escape(name)}</h2>{rows_table(done.tables[name], name)}" for name in done.shown),
        "<h2>How it was run</h2>",
        how_it_was_run(done, seconds),
        files_list(done),
    ]
    return document(f"{done.name}: {done.title}", "\n".join(part for part in parts if part))


def document(title: str, body: str) -> str:
    """A page around its contents."""
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{escape(title)}</title>\n<style>{STYLE}</style>\n</head>\n<body>\n<main>\n{body}\n</main>\n</body>\n</html>\n"
    )


def claims_table(claims: Sequence[Claim]) -> str:
    """One row a claim; the verdict is a word, its color only helps."""
    headers = ("Claim", "The paper", "Our result", "Verdict", "Why")
    head = "".join(f'<th scope="col">{text}</th>' for text in headers)
    body = "".join(map(_claim_row, claims))
    return f"{scrolling('claims')}<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>"


def _claim_row(claim: Claim) -> str:
    kind, mark = MARKS[claim.agrees]
    verdict = f'<span class="{kind}"><span aria-hidden="true">{mark}</span> {claim.verdict}</span>'
    return (
        f'<tr><th scope="row">{escape(claim.statement)}</th><td>{escape(claim.paper)}</td><td>{escape(claim.ours)}</td>'
        f"<td>{verdict}</td><td>{escape(claim.why)}</td></tr>"
    )


def scrolling(label: str) -> str:
    """Wide tables scroll by themselves, with the keyboard too."""
    return f'<div class="scroll" role="region" aria-label="{escape(label)}" tabindex="0">'


def picture_block(picture: Picture) -> str:
    data = base64.b64encode(picture.png).decode()
    return (
        f'<figure><img alt="{escape(picture.alt, quote=True)}" src="data:image/png;base64,{data}">'
        f"<figcaption>{escape(picture.caption)}</figcaption></figure>"
    )


def rows_table(rows: Sequence[Row], label: str) -> str:
    """A short table in full, numbers to four digits."""
    if not rows:
        return "<p>No rows.</p>"
    head = "".join(f'<th scope="col">{escape(str(name).replace("_", " "))}</th>' for name in rows[0])
    body = "".join(f"<tr>{''.join(_cell(value) for value in row.values())}</tr>" for row in rows)
    return f"{scrolling(label)}<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>"


def _cell(value: object) -> str:
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        return f'<td class="number">{figure(value)}</td>'
    return f"<td>{escape(str(value))}</td>"


def figure(value: float) -> str:
    """A number for a reader."""
    if isinstance(value, int):
        return f"{value:,}"
    return f"{value:,.0f}" if 1e4 <= abs(value) < 1e9 else f"{value:.4g}"


def how_it_was_run(done: Reproduction, seconds: float | None) -> str:
    told = [*done.setting, done.data, f"{done.runs:,} runs, seed {done.seed}."]
    told += [] if seconds is None else [f"Took {seconds:.0f} seconds."]
    return f"<ul>{''.join(f'<li>{escape(text)}</li>' for text in told if text)}</ul>"


def files_list(done: Reproduction) -> str:
    names = [
        "reproduction.json",
        *(f"{name}.csv" for name in done.tables),
        *(f"{each.name}.png" for each in done.pictures),
    ]
    links = ", ".join(f'<a href="{escape(name)}">{escape(name)}</a>' for name in names)
    again = f"python -m experiments {done.name} --runs {done.runs} --seed {done.seed}"
    return f"<p>Beside this page: {links}. Again by <code>{escape(again)}</code>.</p>"
