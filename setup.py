"""The compiled module; everything else about the package is in pyproject.toml.

STRATALOG_SANITIZE=1 builds the kernels with AddressSanitizer, for the fuzz runs.
"""

import os

from Cython.Build import cythonize
from setuptools import Extension, setup

sanitize = os.environ.get("STRATALOG_SANITIZE") == "1"
release = ["-O3"]
checked = ["-O1", "-g", "-fsanitize=address,undefined", "-fno-omit-frame-pointer"]
flags = checked if sanitize else release
links = ["-fsanitize=address,undefined"] if sanitize else []

kernels = Extension(
    "stratalog.records._kernels",
    ["src/stratalog/records/_kernels.pyx"],
    extra_compile_args=flags,
    extra_link_args=links,
)

setup(
    ext_modules=cythonize(
        [kernels],
        compiler_directives={"language_level": "3", "embedsignature": True},
    )
)
