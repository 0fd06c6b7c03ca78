"""``recordwise attack``: a description, published files, and what they give away."""

import stat

import numpy as np
import pytest
from openpyxl import Workbook

import recordwise as rw
from build import employers
from recordwise.disclosure import attack, largest_contributor, read_description
from recordwise.errors import ParameterError

DIMENSIONS = """
[dimensions.county]
file = "counties.csv"
levels = ["state", "county"]
total = "00"

[dimensions.naics]
file = "industries.csv"
levels = ["sector", "naics"]
"""
TABLE = """
[[table]]
file = "emp.csv"
cells = { county = "fips", naics = "code" }
value = "emp"
"""
CELLS = """fips,code,emp,est
00,,900,40
01,,500,20
02,,400,20
01001,,300,12
01003,,200,8
02001,,400,20
01001,31,100,3
01001,44,200,9
01003,31,D,1
01003,44,D,7
01,31,130,4
01,44,370,16
"""


@pytest.fixture
def publication(tmp_path):
    """A folder with two code lists, a table and its description."""
    (tmp_path / "counties.csv").write_text("state,county\n01,01001\n01,01003\n02,02001\n")
    (tmp_path / "industries.csv").write_text("sector,naics\n31,311\n44,441\n")
    (tmp_path / "emp.csv").write_text(CELLS)
    (tmp_path / "tables.toml").write_text('absent = "unknown"\n' + DIMENSIONS + TABLE)
    return tmp_path


def with_empty_code(folder, text):
    """The empty code of a column is the total."""
    (folder / "tables.toml").write_text(text)
    return folder / "tables.toml"


def test_a_subtraction_gives_a_withheld_cell_away(publication, run, run_json) -> None:
    told = run("attack", publication / "tables.toml", "--out", publication / "found.csv")
    assert told.exit_code == 0, told.output
    assert "2 withheld cells: 2 disclosed exactly" in told.stdout
    assert "Assumed: No value is negative." in told.stdout
    file = publication / "found.csv"
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert "01003,31,30,30" in file.read_text()
    assert run_json("attack", publication / "tables.toml") == {
        "These tables": {"disclosed": 2, "nearly disclosed": 0, "protected": 0}
    }
    again = run("attack", publication / "tables.toml", "--out", file)
    assert again.exit_code == 2
    assert "already exists" in again.stderr


def test_rounded_numbers_leave_an_interval(publication, run) -> None:
    text = 'absent = "unknown"\n' + DIMENSIONS + TABLE + "rounded_to = 10\n"
    found = attack(with_empty_code(publication, text))
    by_code = dict(zip(found.codes, zip(found.low, found.high)))
    assert by_code["01003", "31"] == pytest.approx((20, 40))
    assert any("off by at most 5" in each for each in found.assumptions)


def test_a_lone_contributor_is_what_the_cell_is(publication) -> None:
    text = 'absent = "unknown"\n' + DIMENSIONS + TABLE + 'number = "est"\n'
    found = attack(with_empty_code(publication, text))
    at = found.codes.index(("01003", "31"))
    assert (found.largest_low[at], found.largest_high[at]) == (30, 30)
    assert np.isnan(found.largest_low[1 - at])


def test_a_workbook_is_read_like_a_csv_file(publication) -> None:
    book = Workbook()
    for line in CELLS.splitlines():
        book.active.append(line.split(","))
    book.save(publication / "emp.xlsx")
    plain, text = attack(publication / "tables.toml"), 'absent = "unknown"\n' + DIMENSIONS + TABLE
    found = attack(with_empty_code(publication, text.replace("emp.csv", "emp.xlsx")))
    assert found.codes == plain.codes
    assert np.array_equal(found.low, plain.low)
    # Any sheet by its name.
    book.active.title = "Employment"
    book.create_sheet("Notes", 0).append(["nothing here"])
    book.save(publication / "emp.xlsx")
    named = text.replace('"emp.csv"', '"emp.xlsx"\nsheet = "Employment"')
    assert np.array_equal(attack(with_empty_code(publication, named)).high, plain.high)
    with pytest.raises(ParameterError, match=r"has no sheet 'Pay'\. It has Notes, Employment"):
        attack(with_empty_code(publication, named.replace('"Employment"', '"Pay"')))


@pytest.mark.parametrize(
    ("old", "new", "problem"),
    [
        ('"emp.csv"', '"none.csv"', "'none.csv' does not exist"),
        ('"emp.csv"', '"emp.csv"\nsheet = "Pay"', "is no workbook"),
        ('value = "emp"', 'value = "employees"', "has no column 'employees'"),
        ('levels = ["state", "county"]', 'levels = ["region", "county"]', "names a column 'region'"),
        ("county = ", "place = ", "names an unknown dimension 'place'"),
        ('absent = "unknown"', 'absent = "none"', "absent must be one of zero, unknown"),
        ('value = "emp"', 'value = "emp"\nrounded_up = 3', "has an unknown entry 'rounded_up'"),
        ('value = "emp"', 'value = "emp"\nwithheld = ["S"]', "has 2 entries that are no number"),
        ('value = "emp"', 'value = "emp"\nrounded_to = "ten"', "must be of the kind int or float"),
        ("[[table]]", "[table", "is not a TOML file"),
        ('absent = "unknown"', 'absent = "unknown"\npercent = -3', "percent must be above 0"),
    ],
)
def test_a_wrong_description_is_refused_with_the_reason(publication, run, old, new, problem) -> None:
    file = publication / "tables.toml"
    text = file.read_text()
    assert old in text
    file.write_text(text.replace(old, new))
    told = run("attack", file)
    assert told.exit_code == 2
    assert problem in told.stderr.replace("\n", " ")


def test_tables_that_do_not_add_up_are_refused(publication, run) -> None:
    (publication / "emp.csv").write_text(CELLS.replace("01,31,130", "01,31,90"))
    told = run("attack", publication / "tables.toml")
    assert told.exit_code == 2
    assert "contradict each other" in told.stderr


@pytest.mark.costly
def test_a_private_release_next_to_tables_published_earlier(tmp_path, run) -> None:
    """What the earlier tables give away alone is stated apart; the private one adds bounds."""
    (tmp_path / "counties.csv").write_text("state,county\n01,a\n01,b\n01,c\n")
    (tmp_path / "emp.csv").write_text("county,emp\n01,600\na,D\nb,D\nc,100\n")
    described = '[dimensions.county]\nfile = "counties.csv"\nlevels = ["state", "county"]\n'
    table = '[[table]]\nfile = "emp.csv"\ncells = { county = "county" }\nvalue = "emp"\n'
    (tmp_path / "known.toml").write_text('absent = "zero"\n' + described + table)
    records = {"id": [1, 2, 3], "county": ["a", "b", "c"], "emp": [300, 200, 100]}
    asked = rw.query().group_by("county", keys=["a", "b", "c"]).sum("emp", rw.Gaussian(sigma=10))
    opened = employers(records, "county", tuned_on="public", ledger=tmp_path / "ledger")
    with opened as session:
        session.run(asked).save(tmp_path / "out")
    private = '[[table]]\nrelease = "out"\nname = "county"\ncells = { county = "county" }\nvalue = "sum_emp"\n'
    (tmp_path / "private.toml").write_text(private)
    told = run("attack", tmp_path / "private.toml", "--known", tmp_path / "known.toml")
    assert told.exit_code == 0, told.output
    assert "The tables published earlier, alone: 2 withheld cells: 0 disclosed exactly" in told.stdout
    assert "no later release protects" in told.stdout
    assert "hold together with 99.9 % confidence" in told.stdout
    alone, both = (
        attack(read_description(*files))
        for files in ((tmp_path / "known.toml",), (tmp_path / "known.toml", tmp_path / "private.toml"))
    )
    assert (alone.low.tolist(), alone.high.tolist()) == ([0, 0], [500, 500])
    assert np.all(both.low > 80)
    assert np.all((both.low <= [300, 200]) & (both.high >= [300, 200]))


@pytest.mark.parametrize(
    ("file", "old", "new", "problem"),
    [
        ("emp.csv", "01001,,300", '01001,,"3,5"', "has 1 entries that are no number"),
        ("emp.csv", "01001,,300", "01001,,nan", "has 1 entries that are no number"),
        ("counties.csv", "01,01003", ",01003", "dimension 'county' has rows without a code"),
        ("counties.csv", "01,01001\n01,01003\n02,02001\n", "", "is not a table with one header line and rows"),
        ("emp.csv", "01001,,300", "\udcff,,300", "'emp.csv' is not CSV in UTF-8"),
    ],
)
def test_a_file_that_cannot_be_read_rightly_is_refused(publication, run, file, old, new, problem) -> None:
    """A decimal comma, nan, a code that is missing, no rows, another encoding."""
    text = (publication / file).read_text()
    assert old in text
    (publication / file).write_bytes(text.replace(old, new).encode("utf-8", "surrogateescape"))
    told = run("attack", publication / "tables.toml")
    assert told.exit_code == 2
    assert problem in told.stderr.replace("\n", " ")


def test_commas_between_thousands_are_read(publication) -> None:
    plain = attack(publication / "tables.toml")
    text = (
        CELLS.replace("00,,900", '00,,"1,900"')
        .replace("02,,400", '02,,"1,400"')
        .replace("02001,,400", '02001,,"1,400"')
    )
    (publication / "emp.csv").write_text(text)
    assert attack(publication / "tables.toml").low.tolist() == plain.low.tolist()


def test_a_cell_that_another_table_shows_about_is_attacked(publication) -> None:
    """Withheld today, and shown by an earlier vintage: known to within what the vintage is off."""
    (publication / "emp.csv").write_text(CELLS.replace("01,31,130", "01,31,D").replace("01,44,370", "01,44,D"))
    (publication / "old.csv").write_text("fips,code,emp\n01003,31,30\n")
    text = 'absent = "unknown"\n' + DIMENSIONS + TABLE + TABLE.replace("emp.csv", "old.csv") + "off_by_percent = 2\n"
    found = attack(with_empty_code(publication, text))
    at = found.codes.index(("01003", "31"))
    assert (found.low[at], found.high[at]) == pytest.approx((29.4, 30.6))
    assert found.status[at] == "nearly disclosed"


def test_the_second_largest_who_has_nothing_knows_that_the_largest_has_all() -> None:
    unknown, nothing = np.array([np.nan]), np.zeros(1)
    low, high = largest_contributor(np.array([5.0]), np.array([9.0]), unknown, nothing)
    assert (low[0], high[0]) == (5, 9)


def private_bounds(folder, mechanism, copies: int):
    """The bounds of county a from so many descriptions of the same private table."""
    (folder / "counties.csv").write_text("county\na\nb\n")
    if not (folder / "out").exists():
        with employers(
            {"id": [1, 2], "county": ["a", "b"], "emp": [300, 200]},
            "county",
            tuned_on="public",
            ledger=folder / "ledger",
        ) as session:
            session.run(rw.query().group_by("county", keys=["a", "b"]).sum("emp", mechanism)).save(folder / "out")
    table = '[[table]]\nrelease = "out"\nname = "county"\ncells = { county = "county" }\nvalue = "sum_emp"\n'
    (folder / "tables.toml").write_text(
        '[dimensions.county]\nfile = "counties.csv"\nlevels = ["county"]\n' + copies * table
    )
    found = read_description(folder / "tables.toml")
    return found.high[0] - found.low[0]


def test_bounds_from_several_private_tables_hold_together(tmp_path) -> None:
    one, two = (private_bounds(tmp_path, rw.Gaussian(sigma=10), copies) for copies in (1, 2))
    reach = [20 * np.sqrt(2 * np.log(2 * 2 * copies / 0.001)) for copies in (1, 2)]
    assert (one, two) == pytest.approx(tuple(reach), rel=1e-6)


def test_clamped_sums_give_no_bounds_of_totals(tmp_path) -> None:
    """A giant that was cut down lies far above what is published."""
    with pytest.raises(ParameterError, match="clamped or with other than Gaussian noise"):
        private_bounds(tmp_path, rw.Clamped(to=20, rho=1), 1)


def test_codes_of_a_publication_are_no_formulas_in_the_file_of_intervals(publication):
    for name in ("counties.csv", "emp.csv"):
        file = publication / name
        file.write_text(file.read_text().replace("01003", "@SUM(1)"))
    attack(publication / "tables.toml").save(publication / "found.csv")
    lines = (publication / "found.csv").read_text().splitlines()
    assert [line for line in lines if "@SUM" in line]
    assert not [line for line in lines if line.startswith("@")]
