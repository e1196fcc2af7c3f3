"""The build of kraftlake: setuptools, with the kernels as one extension module for every Python from 3.11 on.

KRAFTLAKE_KERNELS=checked builds kernels that check each index, KRAFTLAKE_KERNELS=sanitized ones with the compiler's
address and undefined-behaviour sanitizers; both for tests.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import sys
from pathlib import Path
from typing import Any

from amalgamation import amalgamate
from setuptools import Extension, build_meta
from setuptools.build_meta import *  # noqa: F403 - the hooks of PEP 517
from setuptools.command.build_ext import build_ext

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = ROOT / "kraftlake"
MODULE = "kraftlake.kernels.compiled"
COMPILERS = ("cc", "gcc", "clang")
ZIG = "ziglang"
SANITIZERS = "-fsanitize=address,undefined"
DIRECTIVES: dict[str, Any] = {
    "language_level": 3, "boundscheck": False, "wraparound": False, "initializedcheck": False, "cdivision": True,
    "infer_types": True, "binding": False, "embedsignature": False,
}  # fmt: skip


def sources_of(package: Path) -> str:
    """All that the extension is made of, as text: its hash is in the extension."""
    headers = sorted((package / "kernels").rglob("*.h")) + sorted((package / "kernels").rglob("*.pxd"))
    return amalgamate(package) + "".join(path.read_text() for path in headers)


def hash_of(package: Path) -> str:
    """The SHA-256 of `sources_of`, in hex: `compiled.SOURCES`."""
    return hashlib.sha256(sources_of(package).encode()).hexdigest()


def version_of(package: Path) -> str:
    """The version of kraftlake."""
    found = re.search(r'^__version__ = "(.+)"$', (package / "__init__.py").read_text(), re.MULTILINE)
    assert found is not None
    return found[1]


def kernels() -> Extension:
    """The extension module; `BuildKernels` makes its source."""
    kind = os.environ.get("KRAFTLAKE_KERNELS", "")
    flags = ["-O3", "-g0", "-fno-math-errno", f"-ffile-prefix-map={ROOT}=."]
    link = ["-Wl,-s"] if sys.platform == "linux" else []
    if kind == "sanitized":
        flags, link = ["-O1", "-g", SANITIZERS, "-fno-sanitize-recover=all"], [SANITIZERS]
    return Extension(
        MODULE,
        ["build/kernels/compiled.py"],
        define_macros=[("Py_LIMITED_API", "0x030B0000")],
        py_limited_api=True,
        include_dirs=["kraftlake/kernels/batches"],
        extra_compile_args=flags,
        extra_link_args=link,
    )


class BuildKernels(build_ext):
    """Makes the extension's source before it is compiled, and takes zig's C compiler where there is no other."""

    def build_extension(self, extension: Extension) -> None:
        """Make the C file of the kernels, and compile it."""
        from Cython.Build import cythonize

        source = Path(extension.sources[0])
        source.parent.mkdir(parents=True, exist_ok=True)
        constants = f'VERSION = "{version_of(PACKAGE)}"\nSOURCES = "{hash_of(PACKAGE)}"\n'
        source.write_text(amalgamate(PACKAGE) + constants)
        checked = os.environ.get("KRAFTLAKE_KERNELS") == "checked"
        (made,) = cythonize(
            [extension],
            include_path=[str(PACKAGE / "kernels" / "batches")],
            compiler_directives={**DIRECTIVES, "boundscheck": checked, "wraparound": False},
            quiet=True,
        )
        extension.sources = made.sources
        super().build_extension(extension)

    def build_extensions(self) -> None:
        """Build with the compiler that is found."""
        if not has_compiler():
            use_zig(self.compiler)
        super().build_extensions()


def has_compiler() -> bool:
    """Whether a C compiler is installed: that of CC, or one of the usual names."""
    return any(shutil.which(name.split()[0]) for name in (os.environ.get("CC", ""), *COMPILERS) if name)


def use_zig(compiler: Any) -> None:
    """Let setuptools compile and link with `python -m ziglang cc`."""
    zig = [sys.executable, "-m", "ziglang", "cc"]
    compiler.set_executables(compiler=zig, compiler_so=[*zig, "-fPIC"], linker_so=[*zig, "-shared"])


def get_requires_for_build_wheel(config_settings: Any = None) -> list[str]:
    """What building a wheel needs beside pyproject.toml's: zig's C compiler where none is installed."""
    return [*build_meta.get_requires_for_build_wheel(config_settings), *([] if has_compiler() else [ZIG])]


def get_requires_for_build_editable(config_settings: Any = None) -> list[str]:
    """The same for an editable install."""
    return get_requires_for_build_wheel(config_settings)
