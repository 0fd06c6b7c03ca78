"""The mechanisms whose intervals are measured: every kind, and those of the README, the tutorial and the demo."""

from collections.abc import Mapping

import recordwise as rw
from recordwise.exact.functions import log, x

SUMS: Mapping[str, object] = {
    "Gaussian, sigma .365": rw.Gaussian(sigma="0.365"),
    "Gaussian, sigma 1": rw.Gaussian(sigma=1),
    "Gaussian, sigma 2": rw.Gaussian(sigma=2),
    "Gaussian, sigma 30": rw.Gaussian(sigma=30),
    "UnitSplit at 50": rw.UnitSplit(at=50, rho="0.1"),
    "UnitSplit at 20 (demo, tutorial)": rw.UnitSplit(at=20, rho="0.5"),
    "Clamped to 5,000": rw.Clamped(to=5000, rho=50),
    "GeneralizedGaussian, shape 1/2": rw.GeneralizedGaussian(scale=5, shape="0.5"),
    "GeneralizedGaussian, shape 1 (Laplace)": rw.GeneralizedGaussian(scale=5, shape=1),
    "Polylog": rw.Polylog(power=2, rate=1, offset=4, scale=10),
    "Polylog (demo)": rw.Polylog(power=2, rate=1, offset=3, variance=400),
    "Additive": rw.mechanisms.Additive((x / 5) ** "1/2" + log(x / 10 + 1)),
    "LogTransform, offset 10, sigma .2": rw.LogTransform(offset=10, sigma="0.2"),
    "LogTransform, offset 10, sigma 1": rw.LogTransform(offset=10, sigma=1),
    "LogTransform (demo)": rw.LogTransform(offset=2000, sigma="0.25"),
    "LogTransform (tutorial)": rw.LogTransform(offset=2000, sigma="0.5"),
    "LogTransform (README)": rw.LogTransform(offset=5000, sigma="0.5"),
    "LogTransform, Laplace": rw.LogTransform(offset=10, laplace_scale="0.1"),
    "RootTransform 2, sigma .5": rw.RootTransform(degree=2, sigma="0.5"),
    "RootTransform 2, sigma 3": rw.RootTransform(degree=2, sigma=3),
    "RootTransform 4, Laplace": rw.RootTransform(degree=4, laplace_scale="0.05"),
    "Transform": rw.mechanisms.Transform(x ** "1/3", x**3, offset=1, sigma="0.2"),
    "Sized Gaussian": rw.Sized(rw.Gaussian(sigma="0.1"), floor=50),
    "Sized Gaussian, fat-tailed below": rw.Sized(
        rw.Gaussian(sigma="0.1"), floor=50, low=rw.GeneralizedGaussian(scale="0.02", shape="0.5"), low_below=200
    ),
    "Sized LogTransform": rw.Sized(rw.LogTransform(offset="0.2", sigma="0.15"), floor=50),
}
COUNTS: Mapping[str, object] = {
    "Gaussian, sigma .365": rw.Gaussian(sigma="0.365"),
    "Gaussian, sigma 1": rw.Gaussian(sigma=1),
    "Gaussian, rho .1 (demo, tutorial)": rw.Gaussian(rho="0.1"),
    "Gaussian, rho .05 (README)": rw.Gaussian(rho="0.05"),
    "GeneralizedGaussian, shape 1 (Laplace)": rw.GeneralizedGaussian(scale=5, shape=1),
    "LogTransform, offset 10, sigma .2": rw.LogTransform(offset=10, sigma="0.2"),
    "RootTransform 2, sigma .5": rw.RootTransform(degree=2, sigma="0.5"),
}
AVERAGED = (
    "Gaussian, sigma 1",
    "Gaussian, sigma 30",
    "UnitSplit at 20 (demo, tutorial)",
    "GeneralizedGaussian, shape 1/2",
    "LogTransform, offset 10, sigma .2",
    "LogTransform (README)",
    "RootTransform 2, sigma .5",
)
SIGNED: Mapping[str, object] = {
    "Gaussian, sigma 30": rw.Gaussian(sigma=30),
    "GeneralizedGaussian, shape 1/2": rw.GeneralizedGaussian(scale=5, shape="0.5"),
    "LogTransform, signed": rw.LogTransform(offset=10, sigma="0.2", signed=True),
    "RootTransform 2, signed": rw.RootTransform(degree=2, sigma="0.5", signed=True),
}
COUNT = rw.Gaussian(rho="0.05")
QUANTILE = {"grid": rw.mechanisms.Grid.log(1, 20_000, bits=7), "rho": "0.1"}
PUBLIC_SIZES = {0: 0, 1: 3, 3: 0, 10: 9, 100: 130, 10_000: 14_000, 10**7: 10**7, 10**11: 10**11}
"""What is publicly known about the size of a cell of each exact size."""
