"""Hierarchies are equal if their names, levels and codes are."""

import recordwise as rw


def test_hierarchies_with_other_codes_are_not_equal() -> None:
    def places(**codes: list[str]) -> rw.Hierarchy:
        return rw.Hierarchy.of("place", codes, levels=["state", "county"], source="public: a list")

    first = {"state": ["A", "A", "B"], "county": ["A1", "A2", "B1"]}
    assert places(**first) == places(**first)
    assert hash(places(**first)) == hash(places(**first))
    assert places(**first) != places(state=["A", "A", "B"], county=["A1", "A2", "B2"])
    assert places(**first) != places(state=["A", "A"], county=["A1", "A2"])
    assert places(**first) != "place"
