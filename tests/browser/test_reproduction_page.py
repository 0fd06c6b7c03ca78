"""The page of an experiment and the list of all of them, in a real browser."""

from typing import Any

import pytest

from browser.kept_pictures import ARTEFACTS
from experiments.frame import Claim, Picture, Reproduction, new_figure, tidy, write, write_index


def finished() -> Reproduction:
    """Every kind of verdict, a picture, and a table wider than a phone."""
    figure, axes = new_figure(size=(9, 4))
    axes[0, 0].plot([1, 2, 3], [1, 4, 9])
    tidy(axes[0, 0], title="Squares", xlabel="number", ylabel="its square")
    verdicts = ((True, ""), (False, "another number"), (None, "too few runs"))
    return Reproduction(
        name="made-up",
        title="Squares of numbers",
        source="nobody, nowhere",
        setting=("Three numbers.",),
        data="No data.",
        runs=3,
        seed=1,
        claims=[Claim(statement="It rises.", paper="it does", ours="it does", agrees=a, why=w) for a, w in verdicts],
        tables={"wide": [{f"a_rather_long_column_{n}": n * 1234.5 for n in range(12)}] * 3},
        pictures=[Picture(name="squares", figure=figure, caption="A curve.", alt="A rising curve.")],
        shown=("wide",),
    )


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    folder = tmp_path_factory.mktemp("reproductions")
    done = finished()
    write(done, folder / "made-up", seconds=3.0)
    write_index(folder, {"made-up": done, "broken": "a reason"}, {"made-up": 3.0})
    return {
        "reproduction": (folder / "made-up" / "reproduction.html").as_uri(),
        "index": (folder / "index.html").as_uri(),
    }


@pytest.mark.parametrize("name", ["reproduction", "index"])
@pytest.mark.parametrize("width", [1280, 360])
def test_axe_finds_nothing_serious_and_the_page_fits_its_window(
    name: str, width: int, chromium: Any, pages: dict[str, str]
) -> None:
    from axe_playwright_python.sync_playwright import Axe

    context = chromium.new_context(viewport={"width": width, "height": 900})
    try:
        page, asked = context.new_page(), []
        page.on("request", lambda request: asked.append(request.url))
        page.goto(pages[name])
        page.screenshot(path=ARTEFACTS / f"{name}-{width}.png", full_page=True)
        found = Axe().run(page).response["violations"]
        assert [
            (each["id"], each["nodes"][0]["html"]) for each in found if each["impact"] in ("serious", "critical")
        ] == []
        assert page.evaluate("document.documentElement.scrollWidth") == width
        assert [address for address in asked if not address.startswith("data:")] == [pages[name]]
    finally:
        context.close()
