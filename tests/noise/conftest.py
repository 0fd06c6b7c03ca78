import mpmath as mp
import pytest

from recordwise.noise import DiscreteGaussian, DiscreteLaplace, GeneralizedGaussian, LatticeLaw, Polylog

LAWS: list[LatticeLaw] = [
    DiscreteGaussian("0.3"),
    DiscreteGaussian(50),
    DiscreteGaussian(10**12),
    DiscreteLaplace("0.5"),
    DiscreteLaplace(50),
    DiscreteLaplace(10**12),
    GeneralizedGaussian("0.2", 0.5),
    GeneralizedGaussian(50, 0.5),
    GeneralizedGaussian(10**12, 0.5),
    Polylog(1, 1, 4, 2),
    Polylog(50, 5, 1, 1),
    Polylog(10**6, "1.5", 5, "2.5"),
]


@pytest.fixture(params=LAWS, ids=str)
def law(request: pytest.FixtureRequest) -> LatticeLaw:
    return request.param


@pytest.fixture(autouse=True)
def fifty_digits():
    with mp.workdps(50):
        yield
