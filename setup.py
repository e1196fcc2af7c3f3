"""What pyproject.toml can't say: the extension module of the kernels, the description's links, the man pages."""

import sys
from pathlib import Path

from setuptools import setup

sys.path.insert(0, str(Path(__file__).parent / "build_backend"))

from description import HOME_PAGE, description, project_urls
from kernel_build import WHEEL_BUILD, BuildKernels, kernels, manual, platform

ROOT = Path(__file__).resolve().parent
WHEEL = "bdist_wheel" in sys.argv

setup(
    ext_modules=[kernels()],
    cmdclass={"build_ext": BuildKernels},
    long_description=description((ROOT / "README.md").read_text("utf-8"), HOME_PAGE),
    long_description_content_type="text/markdown",
    project_urls=project_urls(HOME_PAGE),
    data_files=[("share/man/man1", manual())] if WHEEL else [],
    options={
        "bdist_wheel": {"py_limited_api": "cp311", "plat_name": platform()},
        "build": {"build_base": WHEEL_BUILD if WHEEL else "build"},
    },
)
