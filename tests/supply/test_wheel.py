"""What is built: the wheel and what it says about itself; in the slow tests, installed where nothing else is."""

import hashlib
import json
import os
import shlex
import shutil
import subprocess
import sys
import tomllib
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from email import message_from_string
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import pytest

import stranger
from supply import matrix
from supply.lock import entries
from supply.sbom import normal
from supply.sizes import sizes

ROOT = stranger.ROOT
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
BILL = json.loads((ROOT / "supply" / "recordwise.cdx.json").read_text())
MOST = 650
"""MB of a plain install, pip included: 567 when this was written, and 780 with the compilers of the extra `fast`."""


def built(target: str, folder: Path) -> Path:
    words = [sys.executable, "-m", "hatchling", "build", "--target", target, "--directory", str(folder)]
    subprocess.run(words, cwd=ROOT, check=True, capture_output=True)
    (found,) = folder.iterdir()
    return found


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return built("wheel", tmp_path_factory.mktemp("wheel"))


@pytest.fixture
def alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the checkout on the path, as for a stranger."""
    monkeypatch.delenv("PYTHONPATH", raising=False)


def unavailable(missing: str) -> None:
    """Say what was not tried; where everything is required, that is a failure."""
    if os.environ.get("RECORDWISE_REQUIRE_ALL"):
        pytest.fail(missing)
    pytest.skip(missing)


def install(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """Let pip install these words in a new environment."""
    subprocess.run([sys.executable, "-m", "venv", folder], check=True)
    pip: list[Any] = [folder / "bin" / "python", "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    return subprocess.run([*pip, *words], capture_output=True, text=True, check=False)


def installed(folder: Path, *words: str) -> Path:
    """A new environment with what pip installs for these words; said, and skipped, where nothing can be installed."""
    done = install(folder, *words)
    if done.returncode:
        unavailable(f"pip cannot install {' '.join(words)} here: what is built was NOT tried. {done.stderr[-500:]}")
    return folder / "bin"


@pytest.mark.process
def test_the_wheel_carries_its_license_its_types_its_pages_and_its_bill_of_materials(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as opened:
        names, inside = set(opened.namelist()), f"recordwise-{PROJECT['version']}.dist-info"
        said = message_from_string(opened.read(f"{inside}/METADATA").decode())
        bill = json.loads(opened.read(f"{inside}/sboms/recordwise.cdx.json"))
    assert {f"{inside}/licenses/LICENSE", "recordwise/py.typed", "recordwise/cli/demo_plan.toml"} <= names
    assert {name.partition("/")[0] for name in names} == {"recordwise", inside}
    source = ROOT / "src"
    ours = {
        str(path.relative_to(source))
        for path in source.rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    assert {name for name in names if name.startswith("recordwise/")} == ours
    assert (said["Name"], said["Version"]) == (PROJECT["name"], PROJECT["version"])
    assert set(said.get_all("Provides-Extra", [])) == set(PROJECT["optional-dependencies"])
    assert bill == BILL


def test_the_bill_lists_this_version_and_everything_that_it_needs_as_locked() -> None:
    assert (BILL["bomFormat"], BILL["specVersion"]) == ("CycloneDX", "1.6")
    assert BILL["metadata"]["component"]["version"] == PROJECT["version"], "run: python -m supply.sbom"
    listed = {each["name"]: each["version"] for each in BILL["components"]}
    lock = {normal(name): line for name, line in entries((ROOT / "requirements.lock").read_text()).items()}
    stale = {name for name, version in listed.items() if f"=={version} " not in lock[name]}
    assert stale == set(), "run: python -m supply.sbom"
    direct = {normal(each.partition(">")[0]) for each in PROJECT["dependencies"]}
    assert direct <= listed.keys()
    refs = {each["bom-ref"] for each in (BILL["metadata"]["component"], *BILL["components"])}
    edges = {each["ref"]: set(each["dependsOn"]) for each in BILL["dependencies"]}
    assert edges.keys() == refs
    assert set().union(*edges.values()) <= refs


def test_the_matrix_runs_the_versions_of_the_classifiers_and_names_what_is_not_here(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert matrix.versions() == ["3.11", "3.12", "3.13", "3.14"]
    assert all("==" in each for each in matrix.oldest())
    ran: list[tuple[str, str]] = []
    monkeypatch.setattr(matrix, "interpreter", lambda wanted: None if wanted == "3.13" else f"/{wanted}")
    monkeypatch.setattr(matrix, "run", lambda python, kind, tests, kept: not ran.append((python, kind)))  # type: ignore[func-returns-value]
    assert matrix.main(["--python", "3.11", "--python", "3.13"]) == matrix.MISSING
    assert ran == [("/3.11", "newest"), ("/3.11", "oldest")]
    assert capsys.readouterr().out.count("NOT RUN") == 1
    monkeypatch.setattr(matrix, "run", lambda python, kind, tests, kept: kind == "newest")
    assert matrix.main(["--python", "3.11"]) == matrix.FAILED


def path_of_a_stranger(bin_: Path, folder: Path) -> None:
    """Run the README's commands with the installed program; the first one is the installation itself."""
    (folder / "shops.csv").write_text(stranger.SHOPS)
    for line, said in stranger.typed():
        program, *words = shlex.split(line)
        done = subprocess.run([bin_ / program, *words], cwd=folder, capture_output=True, text=True, check=False)
        assert done.returncode == 0, (line, done.stderr)
        assert stranger.comes_back(said, done.stdout), (line, done.stdout)
    assert (folder / "published" / "report.html").exists()


@pytest.mark.slow
@pytest.mark.usefixtures("alone")
def test_a_stranger_installs_the_wheel_and_publishes_their_own_csv(wheel: Path, tmp_path: Path) -> None:
    bin_ = installed(tmp_path / "env", str(wheel))
    (packages,) = (tmp_path / "env" / "lib").glob("*/site-packages")
    found = sizes(str(packages))
    assert {normal(name) for name in found} - {"pip", "setuptools"} == {
        "recordwise",
        *(each["name"] for each in BILL["components"]),
    }
    assert sum(found.values()) / 1e6 < MOST
    version = subprocess.run([bin_ / "recordwise", "--version"], capture_output=True, text=True, check=True)
    assert version.stdout == f"recordwise {PROJECT['version']}\n"
    path_of_a_stranger(bin_, tmp_path)
    words: list[Any] = [bin_ / "recordwise", "demo", "--establishments", "2000", "--out", "demo"]
    assert subprocess.run(words, cwd=tmp_path, capture_output=True, check=False).returncode == 0
    # What the compilers speed up works without them.
    words = [bin_ / "recordwise", "postprocess", "published", "--out", "fitted"]
    done = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


@pytest.mark.slow
@pytest.mark.usefixtures("alone")
def test_the_source_archive_installs_too(tmp_path: Path) -> None:
    bin_ = installed(tmp_path / "env", str(built("sdist", tmp_path / "dist")))
    assert subprocess.run([bin_ / "recordwise", "--version"], check=False).returncode == 0


@pytest.fixture(scope="module")
def house(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the wheel and all that it needs."""
    folder = tmp_path_factory.mktemp("wheelhouse")
    words: list[Any] = [sys.executable, "-m", "pip", "download", "--quiet", "--dest", folder, str(wheel)]
    if subprocess.run(words, capture_output=True, check=False).returncode:
        unavailable("pip cannot download here: the folder of wheels was NOT tried")
    return folder


@pytest.mark.slow
@pytest.mark.usefixtures("alone")
def test_a_folder_of_wheels_installs_without_a_network(house: Path, tmp_path: Path) -> None:
    """docs/index.md, "Without a network": what is downloaded outside is all that the inside needs."""
    bin_ = installed(tmp_path / "env", "--no-index", "--find-links", str(house), "recordwise")
    path_of_a_stranger(bin_, tmp_path)


def project_of(file: Path) -> str:
    """The name under which an index lists a file."""
    return normal(file.name.partition("-")[0])


@contextmanager
def index_of(house: Path, folder: Path) -> Iterator[str]:
    """A package index of the files of a folder, with their digests, on this machine; yields its address."""
    simple = folder / "simple"
    for file in house.iterdir():
        own = simple / project_of(file)
        own.mkdir(parents=True, exist_ok=True)
        shutil.copy(file, own)
        with (own / "index.html").open("a") as page:
            page.write(f'<a href="{file.name}#sha256={digest_of(file)}">{file.name}</a>\n')
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(SimpleHTTPRequestHandler, directory=str(folder)))
    thread = Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/simple"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def digest_of(file: Path) -> str:
    with file.open("rb") as opened:
        return hashlib.file_digest(opened, "sha256").hexdigest()


@pytest.mark.slow
@pytest.mark.usefixtures("alone")
def test_the_wheel_installs_by_name_and_digest_from_an_index_that_has_nothing_else(
    house: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As after an upload: `pip install recordwise` in an empty environment, every file by its digest."""
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    wanted = tmp_path / "wanted.txt"
    lines = [
        f"{project_of(file)}=={file.name.split('-')[1]} --hash=sha256:{digest_of(file)}" for file in house.iterdir()
    ]
    wanted.write_text("\n".join(lines))
    with index_of(house, tmp_path) as address:
        bin_ = installed(tmp_path / "env", "--isolated", "--index-url", address, "--require-hashes", "-r", str(wanted))
        wanted.write_text("\n".join(each.replace("sha256:", "sha256:0000")[:-4] for each in lines))
        refused = install(
            tmp_path / "other", "--isolated", "--index-url", address, "--require-hashes", "-r", str(wanted)
        )
    assert refused.returncode != 0
    assert "Expected sha256 0000" in refused.stderr
    path_of_a_stranger(bin_, tmp_path)
    (bill,) = (tmp_path / "env" / "lib").glob("*/site-packages/recordwise-*.dist-info/sboms/recordwise.cdx.json")
    assert json.loads(bill.read_text()) == BILL


@pytest.mark.slow
@pytest.mark.usefixtures("alone")
def test_jupyter_runs_the_first_notebook(wheel: Path, tmp_path: Path) -> None:
    bin_ = installed(tmp_path / "env", str(wheel), "nbclient", "ipykernel")
    shutil.copy(ROOT / "docs" / "notebooks" / "first-release.ipynb", tmp_path)
    done = subprocess.run([bin_ / "jupyter", "execute", "first-release.ipynb"], cwd=tmp_path, check=False)
    assert done.returncode == 0
    assert (tmp_path / "published" / "report.html").exists()


@pytest.mark.slow
def test_the_container_builds_and_says_its_version() -> None:
    tool = next((each for each in ("podman", "docker", "buildah") if _runs(each)), None)
    if tool is None:
        pytest.skip("neither podman, docker nor buildah runs here: the container file was NOT built")
    subprocess.run([tool, "build", "--file", "Containerfile", "--tag", "recordwise-test", "."], cwd=ROOT, check=True)
    if tool == "buildah":
        container = _printed("buildah", "from", "--pull-never", "localhost/recordwise-test")
        words = ["buildah", "run", container, "--", "recordwise", "--version"]
    else:
        words = [tool, "run", "--rm", "--network", "none", "recordwise-test", "--version"]
    assert _printed(*words) == f"recordwise {PROJECT['version']}"


def _runs(tool: str) -> bool:
    """Whether it is installed and, where it needs one, its daemon answers."""
    return (
        shutil.which(tool) is not None
        and not subprocess.run([tool, "info"], capture_output=True, check=False).returncode
    )


def _printed(*words: str) -> str:
    return subprocess.run(words, capture_output=True, text=True, check=True).stdout.strip()
