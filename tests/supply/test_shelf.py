"""What stands around the package: how to cite it, contribute to it and release it; workflows that store no password."""

import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml

from supply.urls import main as main_of_urls

ROOT = Path(__file__).parents[2]
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
FORMS = sorted(path for path in (ROOT / ".github" / "ISSUE_TEMPLATE").glob("*.yml") if path.name != "config.yml")
LINTERS = ("zizmor==1.32.0", "check-jsonschema==0.39.0")


def read(path: Path) -> Any:
    return yaml.safe_load(path.read_text(encoding="utf-8"))


def test_the_citation_names_this_version_its_license_and_the_papers() -> None:
    cited, project = read(ROOT / "CITATION.cff"), tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert (cited["version"], cited["license"]) == (project["version"], project["license"])
    assert len(cited["references"]) == 3
    assert all(each["authors"] and each["title"] for each in cited["references"])


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.name)
def test_a_workflow_has_no_right_that_it_does_not_need_and_pins_what_it_uses(path: Path) -> None:
    flow = read(path)
    assert flow["permissions"] == {}
    for job in flow["jobs"].values():
        assert "timeout-minutes" in job
        assert set(job["permissions"].items()) <= {("contents", "read"), ("id-token", "write")}
        for step in job["steps"]:
            assert re.fullmatch(r"[\w.-]+/[\w./-]+@[0-9a-f]{40}", step.get("uses", "a/b@" + 40 * "0"))
            assert "${{" not in step.get("run", "")
    assert "secrets." not in path.read_text()


def test_nobody_who_sends_a_change_becomes_an_administrator() -> None:
    for path in WORKFLOWS:
        flow = read(path)
        if "pull_request" in (flow.get("on") or flow[True]):
            assert "sudo" not in path.read_text(), path.name


def test_every_place_states_the_same_python_versions() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    least, most = re.fullmatch(r">=3\.(\d+),<3\.(\d+)", project["requires-python"]).groups()  # type: ignore[union-attr]
    minors = [f"3.{each}" for each in range(int(least), int(most))]
    assert [each.rpartition(" ")[2] for each in project["classifiers"] if "Python :: 3." in each] == minors
    jobs = read(ROOT / ".github" / "workflows" / "test.yml")["jobs"].values()
    assert all(job["strategy"]["matrix"]["python"] == minors for job in jobs)
    said = f"{minors[0]} to {minors[-1]}"
    assert all(f"Python {said}" in (ROOT / name).read_text() for name in ("README.md", "docs/index.md"))
    assert f"({minors[0].replace('.', ', ')}) <= sys.version_info < (3, {most})" in (ROOT / "Makefile").read_text()


def test_only_the_job_that_publishes_has_an_identity_and_somebody_approves_it() -> None:
    jobs = read(ROOT / ".github" / "workflows" / "release.yml")["jobs"]
    assert [name for name, job in jobs.items() if "id-token" in job["permissions"]] == ["publish"]
    assert jobs["publish"]["environment"] == "release"
    assert jobs["publish"]["needs"] == "build"
    assert any(step.get("run") == ".ci/run" for step in jobs["build"]["steps"])


@pytest.mark.parametrize("name", ["CONTRIBUTING.md", "CODE_OF_CONDUCT.md", "RELEASING.md", "docs/architecture.md"])
def test_every_link_and_every_make_target_of_a_page_exists(name: str) -> None:
    page = ROOT / name
    text = page.read_text(encoding="utf-8")
    for target in re.findall(r"\]\(([^)#]+)(?:#[^)]*)?\)", text):
        assert (page.parent / target).exists(), target
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.M))
    assert set(re.findall(r"`make ([a-z-]+)", text)) <= targets


def test_the_hooks_are_the_linters_of_make_lint() -> None:
    hooks = read(ROOT / ".pre-commit-config.yaml")["repos"][0]["hooks"]
    wanted = re.search(r"^lint:.*?\n\n", (ROOT / "Makefile").read_text(), re.M | re.S)
    assert wanted is not None
    used = re.findall(r"\$\(BIN\)/([a-z-]+)", wanted[0])
    assert [Path(hook["entry"].split()[0]).name for hook in hooks] == used


@pytest.mark.slow
def test_linters_of_others_find_nothing_in_workflows_forms_and_citation(tmp_path: Path) -> None:
    python = tmp_path / "bin" / "python"
    subprocess.run([sys.executable, "-m", "venv", tmp_path], check=True)
    words: list[Any] = [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *LINTERS]
    if subprocess.run(words, capture_output=True, check=False).returncode:
        missing = "zizmor and check-jsonschema cannot be installed here: workflows are NOT checked by a linter"
        if os.environ.get("RECORDWISE_REQUIRE_ALL"):
            pytest.fail(missing)
        pytest.skip(missing)
    schemas = {
        "github-workflows": WORKFLOWS,
        "github-issue-forms": FORMS,
        "citation-file-format": [ROOT / "CITATION.cff"],
    }
    for schema, files in schemas.items():
        words = [tmp_path / "bin" / "check-jsonschema", "--builtin-schema", f"vendor.{schema}", *files]
        done = subprocess.run(words, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout
    checked = subprocess.run([tmp_path / "bin" / "zizmor", "--offline", *WORKFLOWS], capture_output=True, check=False)
    assert checked.returncode == 0, checked.stdout


def test_the_addresses_of_the_project_are_those_of_the_repository_that_publishes(tmp_path: Path) -> None:
    file = tmp_path / "pyproject.toml"
    file.write_text((ROOT / "pyproject.toml").read_text())
    assert main_of_urls(["https://code.example.org/agency/recordwise"], file) == 0
    before, after = ((tomllib.loads(path.read_text())) for path in (ROOT / "pyproject.toml", file))
    assert after["project"].pop("urls") == {
        "Source": "https://code.example.org/agency/recordwise",
        "Documentation": "https://code.example.org/agency/recordwise/blob/main/docs/index.md",
        "Changelog": "https://code.example.org/agency/recordwise/blob/main/CHANGELOG.md",
        "Issues": "https://code.example.org/agency/recordwise/issues",
    }
    assert after == before
    written = file.read_text()
    for wrong in (["https://code.example.org/agency/recordwise"], ["http://x.org/a"], ["https://x.org/a\nb"], []):
        assert main_of_urls(wrong, file) == 2
    assert file.read_text() == written
    (build,) = [
        step
        for step in read(ROOT / ".github" / "workflows" / "release.yml")["jobs"]["build"]["steps"]
        if step["name"] == "Build"
    ]
    assert build["run"].splitlines()[0] == '.venv/bin/python -m supply.urls "$ADDRESS"'


def test_the_demo_says_that_it_installs_before_a_minute_of_silence() -> None:
    rule = (ROOT / "Makefile").read_text().split("\n.venv-demo/.ready:")[1].split("\n\n")[0]
    assert 0 < rule.index('@echo "Installing what the demo needs, once') < rule.index("pip install")
