"""Make the pictures of the demo and of its plan in the studio: python docs/make_pictures.py FOLDER (a new folder for the demo)."""

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
COLORS, SHRUNK = 48, 200
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
        # Without the ledger: the plan as it stands before the first release.
        plan = folder / "studio" / "demo" / "plan-2025.toml"
        plan.parent.mkdir(parents=True)
        for each in (plan.name, "places.csv", "industries.csv", "sizes.csv"):
            shutil.copy(folder / each, plan.parent)
        _studio(browser, plan)
        browser.close()


def _studio(browser: Any, plan: Path) -> None:
    """Make the pictures of its control and of its charts, at another goal than the plan's."""
    command = [sys.executable, "-m", "recordwise", "studio", plan.name, "--no-browser"]
    with subprocess.Popen(command, cwd=plan.parent, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        page = browser.new_page(viewport={"width": 1280, "height": 860})
        page.goto(process.stdout.readline().rpartition(" ")[2].strip())
        page.wait_for_selector("#studio:not([hidden])", timeout=300_000)
        page.fill("#within", "40")
        page.keyboard.press("Enter")
        page.get_by_text("From the policy itself").wait_for(timeout=60_000)
        page.evaluate("document.activeElement.blur()")
        _save(page.screenshot(), "studio-control.png", width=960)
        page.set_viewport_size({"width": 1280, "height": 1080})
        page.evaluate("document.querySelector('#pictures-title').scrollIntoView()")
        page.evaluate("window.scrollBy(0, -20)")
        page.wait_for_timeout(300)
        _save(page.screenshot(), "studio-charts.png", width=960)
        process.terminate()


def _screen(text: str) -> str:
    """Return the lines as HTML: headings and commands stand out."""
    lines = text.splitlines()
    found = []
    for at, line in enumerate(lines):
        plain = html.escape(line)
        heading = at and not lines[at - 1].strip() and line.strip()
        found.append(f"<b>{plain}</b>" if heading else f"<i>{plain}</i>" if line.lstrip().startswith("$") else plain)
    return "\n".join(found)


def _save(raw: bytes, name: str, *, width: int | None = None) -> None:
    """Save a picture in few colors, as narrow as said."""
    from PIL import Image

    drawn = Image.open(io.BytesIO(raw)).convert("RGB")
    if width is not None:
        drawn = drawn.resize((width, round(drawn.height * width / drawn.width)), Image.Resampling.LANCZOS)
    picture: Any = drawn.quantize(COLORS if width is None else SHRUNK, dither=Image.Dither.NONE)
    picture.save(ASSETS / name, optimize=True)
    print(name, picture.size, (ASSETS / name).stat().st_size)


if __name__ == "__main__":
    main()
