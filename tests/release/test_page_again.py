"""A release read back from its folder makes the same files again, its page among them."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

import recordwise as rw
import report_releases as releases
from build import keys, question, records, session
from recordwise.errors import SourceError
from recordwise.release.page.page import NO_PARTS

KEPT = Path(__file__).parent.parent / "old_files" / "0.1.0"


def several_queries() -> rw.Release:
    second = rw.query().where("emp > 5").group_by("county", keys=keys()).count(rw.Gaussian(rho="0.1"))
    with session(records()) as opened:
        return opened.run(question(), second.sum("emp", rw.Polylog(power=2, rate=1, offset=3, variance=400)))


MADE: dict[str, Any] = {
    "by industry": releases.by_industry,
    "private keys": releases.private_keys,
    "five levels": releases.five_levels,
    "hostile": releases.hostile_release,
    "counts": releases.only_counts,
    "elsewhere": releases.external,
    "clamped": releases.cut_down,
    "several": several_queries,
}


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


@pytest.mark.parametrize("name", MADE)
@pytest.mark.costly
def test_every_file_is_the_same_byte_for_byte(name: str, tmp_path: Path) -> None:
    labels = releases.HOSTILE_LABELS if name == "hostile" else releases.LABELS
    first = MADE[name]().with_labels(labels=labels).save(tmp_path / "first")
    assert contents(rw.read(first).save(tmp_path / "again")) == contents(first)
    assert b'id="spending"' in (first / "report.html").read_bytes()


@pytest.mark.costly
def test_what_is_made_consistent_later_is_what_would_have_been_made_at_once(tmp_path: Path) -> None:
    release = several_queries()
    at_once = release.consistent().with_labels(labels=releases.LABELS).save(tmp_path / "once")
    release.with_labels(labels=releases.LABELS).save(tmp_path / "drawn")
    later = rw.read(tmp_path / "drawn").consistent().save(tmp_path / "later")
    assert contents(later) == contents(at_once)
    page = (later / "report.html").read_text()
    assert 'id="spending"' in page
    assert "noise of employees" in page


def test_other_labels_replace_those_that_were_kept(tmp_path: Path) -> None:
    release = releases.only_counts()
    first = release.with_labels(labels={"county": "district"}).save(tmp_path / "first")
    assert "district" in (first / "report.html").read_text()
    assert (
        "district" not in (rw.read(first).with_labels(labels={}).save(tmp_path / "again") / "report.html").read_text()
    )


@pytest.mark.parametrize("name", ["release", "private-keys", "seeded", "external"])
def test_a_page_that_lacks_its_parts_says_so_and_invents_no_reason(name: str, tmp_path: Path) -> None:
    page = (rw.read(KEPT / name).save(tmp_path / "again") / "report.html").read_text()
    assert NO_PARTS in page
    assert 'id="spending"' not in page
    assert '"whyNoBand":"this release was saved without its parts"' in page
    assert "all statistics together" in page


def test_a_page_with_its_parts_does_not_say_that_they_are_missing(tmp_path: Path) -> None:
    page = (several_queries().save(tmp_path / "first") / "report.html").read_text()
    assert "without the parts" not in page
    assert "group records by size" in page


def test_parts_that_do_not_add_up_to_the_policy_are_refused(tmp_path: Path) -> None:
    folder = releases.only_counts().save(tmp_path / "first")
    shutil.copytree(folder, tmp_path / "damaged")
    stated = json.loads((folder / "release.json").read_text())
    stated["page"]["policies"][0]["rho"][0][0] = "1/1000"
    (folder / "release.json").write_text(json.dumps(stated))
    with pytest.raises(SourceError, match="do not add up to its policy"):
        rw.read(folder)
    stated["page"]["policies"] = []
    (tmp_path / "damaged" / "release.json").write_text(json.dumps(stated))
    with pytest.raises(SourceError, match="is damaged"):
        rw.read(tmp_path / "damaged")


def test_sizes_that_were_not_kept_are_read_off_between_those_that_were() -> None:
    from recordwise.release.tables import SavedNoise

    kept = SavedNoise(noise_sigma=None, sizes=(1.0, 10.0, 100.0), variances=(1.0, 100.0, 10000.0))
    assert kept.variance_of([1.0, 10.0, 100.0]).tolist() == [1.0, 100.0, 10000.0]
    assert kept.variance_of([2.0, 50.0]) == pytest.approx([4.0, 2500.0], rel=1e-12)
