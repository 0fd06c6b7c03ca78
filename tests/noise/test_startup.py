"""What an import and a first draw cost."""

import subprocess
import sys


def loaded_after(code: str) -> set[str]:
    done = subprocess.run(
        [sys.executable, "-c", f"{code}\nimport sys\nprint('\\n'.join(sys.modules))"],
        capture_output=True,
        text=True,
        check=True,
    )
    return set(done.stdout.split())


def test_neither_the_import_nor_a_small_draw_loads_numba():
    assert "numba" not in loaded_after("import recordwise.noise")
    assert "numba" not in loaded_after(
        "from recordwise.noise import DiscreteGaussian\nDiscreteGaussian(3).sample(1000)"
    )


def test_a_big_draw_loads_numba():
    assert "numba" in loaded_after(
        "from recordwise.noise import DiscreteGaussian\nDiscreteGaussian(3).sample(5_000_000)"
    )


def test_without_numba_a_big_draw_still_comes_out():
    code = "import sys\nsys.modules['numba'] = None\nfrom recordwise.noise import DiscreteGaussian, Seeded\n"
    code += "assert abs(DiscreteGaussian(3).sample(5_000_000, Seeded(1)).var() / 9 - 1) < 0.01"
    assert "recordwise.noise.kernel" not in loaded_after(code)
