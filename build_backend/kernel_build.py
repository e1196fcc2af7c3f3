"""The build of kraftlake: setuptools, with the kernels as one extension module for every Python from 3.11 on.

A wheel also has a man page for each command.

The same source makes the same wheel, byte for byte, with the same compiler. Environment variables choose another build:

- KRAFTLAKE_KERNELS=checked: kernels that check each index; for tests;
- KRAFTLAKE_KERNELS=sanitized: kernels with the compiler's address and undefined-behaviour sanitizers; for tests;
- KRAFTLAKE_KERNELS=guided: the same by zig, and with counters of the branches taken, which guide a fuzzer; for tests;
- KRAFTLAKE_PLATFORM=manylinux_2_17_aarch64 (see PLATFORMS): a wheel for that platform, compiled by zig;
- KRAFTLAKE_HOME_PAGE=https://…: the address of the site of `make docs`, for links of the package's description.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import sys
import sysconfig
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from amalgamation import amalgamate
from setuptools import Extension, build_meta
from setuptools.build_meta import *  # noqa: F403 - the hooks of PEP 517
from setuptools.command.build_ext import build_ext
from setuptools.errors import CompileError

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = ROOT / "kraftlake"
MODULE = "kraftlake.kernels.compiled"
WHEEL_BUILD = "build/wheel"
"""Where a wheel is built, apart from builds of the extension for a checkout."""
COMPILERS = ("cc", "gcc", "clang")
ZIG = "ziglang==0.17.1"
MANUAL = ("click==8.5.1", "click-man==0.6.0")
"""What the man pages of a wheel are made by; kraftlake's commands are described without its other dependencies."""
PLATFORMS = {
    "manylinux_2_17_x86_64": "x86_64-linux-gnu.2.17",
    "manylinux_2_17_aarch64": "aarch64-linux-gnu.2.17",
}
"""zig's target for each platform that a wheel can be built for on another one."""
FLAGS = ["-O3", "-g0", "-fPIC", "-fwrapv", "-Wall", "-Wno-unused-function", f"-ffile-prefix-map={ROOT}=."]
"""-fwrapv: numbers of damaged files overflow, and what becomes of them is the same everywhere."""
SANITIZED = ["-O0", "-g1", "-fPIC", "-fwrapv", "-fsanitize=address,undefined", "-fno-sanitize-recover=all"]
GUIDED = [
    "-O1", "-g1", "-fPIC", "-fwrapv", "-fsanitize=address",
    "-fsanitize=alignment,bool,bounds,float-cast-overflow,integer-divide-by-zero,null,pointer-overflow,shift,vla-bound",
    "-fno-sanitize-recover=all", "-fsanitize-coverage=inline-8bit-counters,pc-table,trace-cmp",
]  # fmt: skip
"""Of what is undefined, the parts by name: for all of it by one name zig compiles a library, which takes 20 seconds."""
EPOCH = "315532800"
"""The time of all files in a wheel, the oldest that a ZIP file can say, where SOURCE_DATE_EPOCH is not set."""
DIRECTIVES: dict[str, Any] = {
    "language_level": 3, "boundscheck": False, "wraparound": False, "initializedcheck": False, "cdivision": True,
    "infer_types": True, "auto_pickle": False, "binding": False, "embedsignature": False,
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
    found = re.search(r'^__version__ = "(.+)"$', (package / "runtime" / "__init__.py").read_text(), re.MULTILINE)
    assert found is not None
    return found[1]


def kernels() -> Extension:
    """The extension module; `BuildKernels` makes its source."""
    guarded = {"sanitized": SANITIZED, "guided": GUIDED}.get(kind())
    return Extension(
        MODULE,
        ["build/kernels/compiled.py"],
        define_macros=[("Py_LIMITED_API", "0x030B0000")],
        py_limited_api=True,
        include_dirs=["kraftlake/kernels/batches"],
        extra_compile_args=guarded or FLAGS,
        extra_link_args=guarded or (["-Wl,-s"] if sys.platform == "linux" else []),
    )


def kind() -> str:
    """Which kernels are built; empty for those that are used."""
    return os.environ.get("KRAFTLAKE_KERNELS", "")


def platform() -> str | None:
    """The platform that the wheel is for, where it is not this one."""
    chosen = os.environ.get("KRAFTLAKE_PLATFORM")
    if chosen and chosen not in PLATFORMS:
        raise CompileError(f"KRAFTLAKE_PLATFORM={chosen}: kraftlake is built for {', '.join(PLATFORMS)}")
    return chosen or None


class BuildKernels(build_ext):
    """Makes the extension's source before it is compiled, and takes zig's C compiler where there is no other."""

    def build_extension(self, extension: Extension) -> None:
        """Make the C file of the kernels, and compile it."""
        from Cython.Build import cythonize

        source = Path(extension.sources[0])
        source.parent.mkdir(parents=True, exist_ok=True)
        constants = f'KRAFTLAKE_VERSION = "{version_of(PACKAGE)}"\nSOURCES = "{hash_of(PACKAGE)}"\n'
        source.write_text(amalgamate(PACKAGE) + constants)
        (made,) = cythonize(
            [extension],
            include_path=[str(PACKAGE / "kernels" / "batches")],
            compiler_directives={**DIRECTIVES, "boundscheck": kind() == "checked"},
            force=True,
            quiet=True,
        )
        extension.sources = made.sources
        super().build_extension(extension)

    def build_extensions(self) -> None:
        """Build with the compiler that is found, and on Linux with our flags alone, not those of this Python."""
        if not Path(sysconfig.get_path("include"), "Python.h").exists():
            raise CompileError("the headers of Python are missing: on Debian and Ubuntu, install python3-dev")
        if sys.platform == "linux":
            words = (compiler() if kind() != "guided" else None) or zig(self)
            self.compiler.set_executables(compiler_so=words, linker_so=[*words, "-shared"])
        super().build_extensions()


def compiler() -> list[str] | None:
    """The C compiler that is installed: that of CC, that of this Python, or one of the usual names."""
    names = (os.environ.get("CC"), sysconfig.get_config_var("CC"), *COMPILERS)
    return (
        None if platform() else next((name.split() for name in names if name and shutil.which(name.split()[0])), None)
    )


def zig(command: BuildKernels) -> list[str]:
    """zig's C compiler, for the platform's oldest processors, with its cache in the build's folder."""
    if find_spec("ziglang") is None:
        raise CompileError(f"there is no C compiler: install one (gcc, clang), or `pip install {ZIG}`")
    for name in ("ZIG_GLOBAL_CACHE_DIR", "ZIG_LOCAL_CACHE_DIR"):
        os.environ.setdefault(name, str(Path(command.build_temp, "zig").absolute()))
    chosen = platform()
    return [
        sys.executable,
        "-m",
        "ziglang",
        "cc",
        *(["-target", PLATFORMS[chosen]] if chosen else []),
        "-mcpu=baseline",
    ]


def manual() -> list[str]:
    """The files of the man pages, made anew; their paths from the root, as setuptools wants them."""
    sys.path.insert(0, str(ROOT))
    from tools.man_pages import write_pages

    return [str(page.relative_to(ROOT)) for page in write_pages(ROOT / WHEEL_BUILD / "man")]


def get_requires_for_build_wheel(config_settings: Any = None) -> list[str]:
    """What building a wheel needs beside pyproject.toml's: the makers of man pages, and what the extension needs."""
    return [*get_requires_for_build_editable(config_settings), *MANUAL]


def get_requires_for_build_editable(config_settings: Any = None) -> list[str]:
    """What the extension needs: zig's C compiler where none is installed."""
    return [*build_meta.get_requires_for_build_editable(config_settings), *([] if compiler() else [ZIG])]


def build_wheel(wheel_directory: str, config_settings: Any = None, metadata_directory: Any = None) -> str:
    """Build a wheel of the sources alone, whatever an earlier build has left here, with one time for all files."""
    shutil.rmtree(ROOT / WHEEL_BUILD, ignore_errors=True)
    os.environ.setdefault("SOURCE_DATE_EPOCH", EPOCH)
    return str(build_meta.build_wheel(wheel_directory, config_settings, metadata_directory))
