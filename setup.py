"""The extension module: the kernels, by Cython and a C compiler. All else of the build is in pyproject.toml."""

import sys
from pathlib import Path

from setuptools import setup

sys.path.insert(0, str(Path(__file__).parent / "build_backend"))

from kernel_build import WHEEL_BUILD, BuildKernels, kernels, platform

setup(
    ext_modules=[kernels()],
    cmdclass={"build_ext": BuildKernels},
    options={
        "bdist_wheel": {"py_limited_api": "cp311", "plat_name": platform()},
        "build": {"build_base": WHEEL_BUILD if "bdist_wheel" in sys.argv else "build"},
    },
)
