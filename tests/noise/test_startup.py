"""What an import and a first draw cost."""

import subprocess
import sys

import pytest


def loaded_after(code: str) -> set[str]:
    done = subprocess.run(
        [sys.executable, "-c", f"{code}\nimport sys\nprint('\\n'.join(sys.modules))"],
        capture_output=True,
        text=True,
        check=True,
    )
    return set(done.stdout.split())


COMPILERS = {"numba", "llvmlite"}


@pytest.mark.process
def test_neither_the_import_nor_a_small_draw_loads_a_compiler():
    assert not COMPILERS & loaded_after("import recordwise.noise")
    assert not COMPILERS & loaded_after(
        "from recordwise.noise import DiscreteGaussian\nDiscreteGaussian(3).sample(100_000)"
    )


@pytest.mark.process
def test_a_big_draw_loads_machine_code_and_not_numba():
    loaded = loaded_after("from recordwise.noise import DiscreteGaussian\nDiscreteGaussian(3).sample(2_000_000)")
    assert "recordwise.noise.kernel" in loaded
    assert COMPILERS & loaded == {"llvmlite"}


@pytest.mark.process
def test_without_llvm_a_big_draw_still_comes_out():
    code = "import sys\nsys.modules['llvmlite'] = None\nfrom recordwise.noise import DiscreteGaussian, Seeded\n"
    code += "assert abs(DiscreteGaussian(3).sample(5_000_000, Seeded(1)).var() / 9 - 1) < 0.01"
    assert "recordwise.noise.kernel" not in loaded_after(code)
