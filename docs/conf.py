# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""Settings of the documentation: ``make docs``."""

import os

# Importing touches no driver, but examples that autodoc might evaluate must not need a GPU.
os.environ.setdefault("CUDAGO_DRIVER", "sim")

import cudago

project = "cudago"
copyright = "The cudago authors"
version = release = cudago.__version__

extensions = [
    "sphinx.ext.autodoc",
    "sphinx.ext.intersphinx",
    "numpydoc",
]
exclude_patterns = ["_build"]
html_theme = "alabaster"
html_theme_options = {
    "description": "CUDA for Python with a core in Go",
    "fixed_sidebar": True,
}
html_static_path = []

# Members of the native bases are members of the public classes.
autodoc_default_options = {
    "members": True,
    "inherited-members": "object, str, tuple, BaseException",
}
autodoc_member_order = "groupwise"
autodoc_typehints = "none"  # docstrings have the types already
numpydoc_show_class_members = False  # autodoc shows them

# Without a network the links into NumPy's and Python's documentation are left out.
intersphinx_mapping = {}
nitpicky = False
