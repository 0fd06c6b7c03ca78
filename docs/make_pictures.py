"""Make the two pictures of the demo, its screen and its page: python docs/make_pictures.py FOLDER (a new folder for the demo)."""

import html
import io
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

ASSETS = Path(__file__).parent / "assets"
SCREEN = """<!doctype html><meta charset="utf-8"><style>
body { margin: 0; background: #12171b; }
pre { margin: 0; padding: 22px 26px; color: #e8eaec; display: inline-block; }
pre { font: 14px/1.45 "DejaVu Sans Mono", "Liberation Mono", monospace; }
b { color: #73bce8; font-weight: 600; } i { color: #86cfa3; font-style: normal; }
</style><pre>%s</pre>"""
COLORS = 48
BROWSERS = ("chromium", "chromium-headless-shell", "google-chrome")


def main() -> None:
    from playwright.sync_api import sync_playwright

    folder = Path(sys.argv[1]).resolve()
    where, name = folder.parent, folder.name
    told = subprocess.run(
        [sys.executable, "-m", "recordwise", "demo", "--out", name],
        cwd=where,
        env=os.environ | {"COLUMNS": "112", "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"},
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    browser_path = next(filter(None, map(shutil.which, BROWSERS)), None)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=browser_path, args=["--no-sandbox", "--disable-gpu"])
        page = browser.new_page(viewport={"width": 1400, "height": 900})
        # How long it took says more about the machine that drew the picture.
        shown = re.sub(r" in [0-9.]+ seconds", "", told.rstrip())
        page.set_content(SCREEN % _screen(f"$ recordwise demo --out {name}\n{shown}"))
        _save(page.locator("pre").screenshot(), "demo-screen.png")
        page = browser.new_page(viewport={"width": 1080, "height": 900})
        page.goto((folder / "2026" / "report.html").as_uri())
        page.evaluate("window.recordwise.ready")
        for label, codes in (("State", "A B"), ("Sector", "62")):
            page.get_by_label(label, exact=True).first.fill(codes)
            page.keyboard.press("Enter")
        page.evaluate("document.activeElement.blur()")
        end = page.evaluate("document.querySelector('#area-how').getBoundingClientRect().bottom + window.scrollY + 24")
        clip = {"x": 0, "y": 0, "width": 1080, "height": end}
        _save(page.screenshot(full_page=True, clip=clip), "demo-page.png")
        browser.close()


def _screen(text: str) -> str:
    """Return the lines as HTML: headings and commands stand out."""
    lines = text.splitlines()
    found = []
    for at, line in enumerate(lines):
        plain = html.escape(line)
        heading = at and not lines[at - 1].strip() and line.strip()
        found.append(f"<b>{plain}</b>" if heading else f"<i>{plain}</i>" if line.lstrip().startswith("$") else plain)
    return "\n".join(found)


def _save(raw: bytes, name: str) -> None:
    """Save a picture in few colors."""
    from PIL import Image

    picture: Any = Image.open(io.BytesIO(raw)).convert("RGB").quantize(COLORS, dither=Image.Dither.NONE)
    picture.save(ASSETS / name, optimize=True)
    print(name, picture.size, (ASSETS / name).stat().st_size)


if __name__ == "__main__":
    main()
