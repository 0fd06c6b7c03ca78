"""Tables 1 and 2 of [A] through releases and their records, on a small table."""

import numpy as np
import pytest

from experiments.microdata import paper
from experiments.microdata.released import measured


@pytest.mark.costly
def test_every_method_is_measured_on_records_of_the_same_releases():
    """The sum of Sequential is the noise of the total, which all its runs have: Laplace of scale 8, on the same seeds."""
    table = np.array([[400.0, 0.0, 3.0], [0.0, 60.0, 0.0]])
    lines = {(each.method, each.group): each for each in measured("D01", table, 6, 1)}
    assert set(lines) == {(method, group) for method in paper.METHODS for group in ("sum", "cells")}
    assert all(each.worst_kkt < 1e-8 and each.runs == 6 for each in lines.values())
    other = {(each.method, each.group): each for each in measured("D01", table + 100, 6, 1)}
    assert np.isclose(lines["sequential", "sum"].total, other["sequential", "sum"].total)
    assert np.isclose(lines["ols", "cells"].total, other["ols", "cells"].total)
    assert not np.isclose(lines["nnls", "cells"].total, other["nnls", "cells"].total)
