"""A small hierarchy of places with regions that are no prefix and do not nest with states, and one of industries with a range."""

import recordwise as rw

PLACES = {
    "region": ["South", "West", "West", "West", "South"],
    "state": ["01", "01", "02", "02", "13"],
    "county": ["01001", "0103", "02013", "02", "13001"],
    "county_name": ["Autauga", "Baldwin", "Aleutians", "Rest of Alaska", "Appling"],
}
INDUSTRIES = {"sector": ["31-33", "31-33", "31-33", "11"], "naics": ["311", "3121", "332", "111"]}
LISTED = dict(zip(PLACES["county"], zip(PLACES["region"], PLACES["state"])))
SECTORS = dict(zip(INDUSTRIES["naics"], INDUSTRIES["sector"]))


def places(**changed):
    given = {"levels": ["nation", "region", "state", "county"], "source": "public: a list of places"} | changed
    return rw.Hierarchy.of("place", given.pop("codes", PLACES), totals={"nation": "US"}, **given)


def industries():
    return rw.Hierarchy.of(
        "industry",
        INDUSTRIES,
        levels=["total", "sector", "naics"],
        totals={"total": "00"},
        source="public: a list of industries",
    )


def levels_of(record):
    """The reference: what a record has at every level, None where its code is not listed."""
    region, state = LISTED.get(record["county"], (None, None))
    sector = SECTORS.get(record["naics"])
    own = {"region": region, "state": state, "nation": "US" if state else None}
    return {**record, **own, "sector": sector, "total": "00" if sector else None}
