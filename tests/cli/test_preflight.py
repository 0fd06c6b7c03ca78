"""``recordwise preflight``, and the check that a release makes before the charge: keys that miss the records are noticed."""

import json

import pytest

import recordwise as rw
from build import employers
from recordwise.errors import OutsideError, ParameterError, PlanFileError
from recordwise.plan.file.read import load_plan
from recordwise.release.verify import verify

TABLE = {"id": range(200), "county": ["01", "02"] * 99 + ["03", "04"], "emp": [3] * 200}
PLAN = """\
dataset = "small"
source = "t.parquet"
ledger = "l"
tuned_on = "synthetic"
{outside}
[schema]
unit = "id"
measures.emp = 1
columns.county = "text"
[keys.counties]
rows = {{ county = {keys} }}
[[queries]]
group_by = ["county"]
keys = "counties"
sum.emp = {{ kind = "UnitSplit", at = 5, rho = 0.1 }}
"""


@pytest.fixture
def written(tmp_path):
    import pyarrow as pa
    import pyarrow.parquet as pq

    pq.write_table(pa.table(TABLE), tmp_path / "t.parquet")

    def write(keys, outside=""):
        (tmp_path / "plan.toml").write_text(PLAN.format(keys=keys, outside=outside).replace("'", '"'))
        return tmp_path / "plan.toml"

    return write


WRONG, MOST, ALL = ["1", "2"], ["01", "02"], ["01", "02", "03", "04", "05"]


@pytest.mark.parametrize(
    "keys, outside, made",
    [
        (WRONG, "", True),  # as in the first version
        (WRONG, "max_outside = 0.01", False),
        (WRONG, 'max_outside = "accept"', True),
        (MOST, "max_outside = 0.01", True),
        (MOST, "max_outside = 0.005", False),
        (["01", "03"], "max_outside = 0.5", True),
        (["01"], "max_outside = 0.5", False),
        (ALL, "max_outside = 0", True),
    ],
)
@pytest.mark.costly
def test_a_release_stops_before_the_charge_where_too_many_records_are_outside(
    written, run, tmp_path, keys, outside, made
):
    plan = written(keys, outside)
    result = run("release", plan, "--out", tmp_path / "out", "--yes")
    assert result.exit_code == (0 if made else 2), result.output
    assert (tmp_path / "out").exists() == made
    if not made:
        assert "are outside its published cells. Nothing was spent." in " ".join(result.stderr.split())
        shown = run("ledger", "show", tmp_path / "l", "--json").stdout
        assert '"charged"' not in shown


def test_the_refusal_tells_no_number_of_records(written, run, tmp_path):
    result = run("release", written(WRONG, "max_outside = 0.01"), "--out", tmp_path / "out", "--yes")
    assert not {"200", "198", "100"} & set(result.output.replace("%", " ").split())
    assert (
        run("release", written(WRONG, "max_outside = 0.01"), "--out", tmp_path / "out", "--yes", "--json").exit_code
        == 2
    )


@pytest.mark.costly
def test_preflight_counts_records_and_cells_and_is_a_look(written, run, tmp_path, terminal):
    result = run("preflight", written(ALL))
    assert result.exit_code == 0, result.output
    told = " ".join(result.stdout.split())
    assert "CONFIDENTIAL" in told
    for words in ("county", "200", "5", "1", "tuning_reason ="):
        assert words in told
    with rw.Session.from_plan(load_plan(tmp_path / "plan.toml")) as session:
        opened, look = session.history()
        charged = session._publisher().identity(load_plan(tmp_path / "plan.toml").plan).digest
    assert (opened.kind, look.kind) == ("opened", "looked")
    assert look.body == {"command": "preflight", "plan": charged}
    assert verify(tmp_path / "l") == []
    shown = " ".join(run("ledger", "show", tmp_path / "l").stdout.split())
    assert f"preflight of plan {charged[:12]}" in shown
    assert "(1 look: preflight 1)" in shown
    refused = run("release", tmp_path / "plan.toml", "--out", tmp_path / "out", "--yes")
    assert refused.exit_code == 2
    assert "give a reason as tuning_reason" in " ".join(refused.stderr.split())
    written(ALL, 'tuning_reason = "only codes were corrected"')
    assert run("release", tmp_path / "plan.toml", "--out", tmp_path / "out", "--yes").exit_code == 0
    stated = json.loads((tmp_path / "out" / "release.json").read_text())
    assert (stated["looked_at_records"], stated["looks"]) == (True, {"preflight": 1})
    page = (tmp_path / "out" / "report.html").read_text()
    assert "viewed before (1 look: preflight 1), accepted because: only codes were corrected" in page
    assert verify(tmp_path / "l", against=[tmp_path / "out"]) == []
    for false in ({"looks": {}}, {"looks": {"preflight": 2}}, {"looked_at_records": False}):
        (tmp_path / "out" / "release.json").write_text(json.dumps(stated | false))
        assert verify(tmp_path / "l", against=[tmp_path / "out"]) != []


def test_preflight_of_declared_records_is_no_look(written, run, tmp_path):
    result = run("preflight", written(ALL), "--data", "public", "--show")
    assert result.exit_code == 0, result.output
    assert "computed from public records: records and published cells" in result.stdout
    assert "CONFIDENTIAL" not in result.stdout
    assert not (tmp_path / "l").exists()


def test_preflight_fails_where_the_release_would(written, run, terminal):
    result = run("preflight", written(WRONG, "max_outside = 0.01"))
    assert result.exit_code == 2
    assert "the release will be refused" in " ".join(result.stdout.split())
    assert run("preflight", written(WRONG, 'max_outside = "accept"')).exit_code == 0


def test_preflight_goes_to_a_terminal_only(written, run, tmp_path):
    result = run("preflight", written(ALL))
    assert result.exit_code == 2
    assert result.stdout == ""
    assert "terminal only" in result.stderr
    assert not (tmp_path / "l").exists()


def test_unmatched_codes_are_a_look(written, run, tmp_path, terminal):
    result = run("preflight", written(["01", "3", "05"], "max_outside = 0.9"), "--show")
    assert result.exit_code == 0, result.output
    told = " ".join(result.stdout.split())
    assert "that no key names" in told
    assert "99" in told
    refused = run("release", tmp_path / "plan.toml", "--out", tmp_path / "out", "--yes")
    assert refused.exit_code == 2
    assert "records were viewed" in refused.stderr


def test_the_owner_sees_the_most_frequent_cells_first(written):
    with rw.Session.from_plan(load_plan(written(["01", "3", "05"]))) as session:
        queries = load_plan(written(["01", "3", "05"])).plan.queries
        assert session.owner.unmatched(*queries) == {"county": [(("02",), 99), (("03",), 1), (("04",), 1)]}
        (found,) = session.owner.preflight(*queries)
        assert (found.records, found.outside, found.cells, found.empty) == (200, 101, 3, 2)
        assert repr(found) == "<Coverage: CONFIDENTIAL>"


def asked(keys):
    return rw.query().where("emp > 1").group_by("county", keys=keys).sum("emp", rw.UnitSplit(at=5, rho=1))


@pytest.mark.filterwarnings("ignore::recordwise.errors.UnkeptLedgerWarning")
@pytest.mark.costly
def test_a_session_makes_the_check_unless_any_share_is_accepted(opens):
    import pyarrow as pa

    table = pa.table(TABLE | {"emp": [3] * 198 + [0, 0]})
    with employers(table, "county", **opens.session_options()) as session:
        # Records that the condition leaves out are not outside.
        release = session.run(asked(MOST), rw.query().count(rw.Gaussian(rho=1)), rng=rw.noise.Seeded(1))
        assert release.tables[0].data.num_rows == 2
        with pytest.raises(OutsideError, match=r"more than 0\.01"):
            session.run(asked(MOST), asked(["01"]))
        levels = rw.query().levels("county", rw.prefix("county", 1), keys={"county": ["01", "03"]})
        with pytest.raises(OutsideError):
            session.run(levels.count(rw.Gaussian(rho=1)))
        assert [event.kind for event in session.history()].count("charged") == 1
    with employers(table, "county", max_outside="accept", **opens.session_options()) as session:
        session.run(asked(["01"]))
        plain = session.run(asked(MOST), rw.query().count(rw.Gaussian(rho=1)), rng=rw.noise.Seeded(1))
    assert [each.data for each in plain.tables] == [each.data for each in release.tables]
    assert plain.policy == release.policy


TREE = {
    "id": range(10),
    "area": ["a"] * 9 + ["b"],
    # Listed at every level; in the rest of 3 at two digits, and so in no cell of three; in the rest of 31 at three.
    "code": ["311"] * 4 + ["321"] * 3 + ["312"] * 2 + ["311"],
}
LISTED = {"area": ["a"], "code": ["311"]}


@pytest.mark.filterwarnings("ignore::recordwise.errors.UnkeptLedgerWarning")
@pytest.mark.costly
def test_a_record_in_the_rest_of_a_coarser_table_is_not_outside_a_finer_one(opens):
    import pyarrow as pa

    how = {"measures": {}} | opens.session_options()
    tree = (
        rw.query().group_by("area", keys=LISTED).levels(rw.prefix("code", [1, 2, 3]), keys=LISTED, all_other="publish")
    )
    tree = tree.count(rw.Gaussian(rho=1))
    with employers(pa.table(TREE), "area", "code", max_outside="0.1", **how) as session:
        assert len(session.run(tree).tables) == 3
        found = session.owner.preflight(tree)
    # Only the record of area b is in no cell of any table.
    assert [(each.records, each.outside, each.in_rests) for each in found] == [(10, 1, 0), (10, 1, 3), (10, 1, 5)]
    with (
        employers(pa.table(TREE), "area", "code", max_outside="0.09", **how) as session,
        pytest.raises(OutsideError),
    ):
        session.run(tree)


RESTS = """\
[[queries]]
keys = "counties"
levels = { by = [{ prefix = "county", lengths = [1, 2] }] }
all_other = "publish"
count = { kind = "Gaussian", rho = 1 }
"""


def test_preflight_says_how_many_records_are_in_a_rest(written, run, terminal):
    plan = written(["01"])
    text = plan.read_text().split("[[queries]]")[0]
    plan.write_text(text + RESTS)
    told = " ".join(run("preflight", plan).stdout.split())
    assert "in an all other cell" in told
    assert "101" in told
    assert "in an all other cell" not in run("preflight", written(ALL)).stdout


@pytest.mark.parametrize("outside", ["often", 1, "-0.1"])
def test_a_share_that_is_none_is_refused(outside, written):
    with pytest.raises(ParameterError):
        rw.Session(TABLE, unit="id", columns={}, max_outside=outside)
    with pytest.raises(PlanFileError, match="max_outside"):
        load_plan(written(ALL, f"max_outside = {outside}" if outside == 1 else f'max_outside = "{outside}"'))
