# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""Settings of the documentation: ``make docs``."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

from docutils import nodes
from sphinx import addnodes

# Importing touches no driver, but examples that autodoc might evaluate must not need a GPU.
os.environ.setdefault("CUDAGO_DRIVER", "sim")

import cudago

if TYPE_CHECKING:
    from sphinx.application import Sphinx
    from sphinx.environment import BuildEnvironment

project = "cudago"
copyright = "The cudago authors"
version = release = cudago.__version__

extensions = [
    "sphinx.ext.autodoc",
    "numpydoc",
    "myst_parser",  # for CHANGELOG.md
    "sphinx_copybutton",
    "sphinx_design",
]
exclude_patterns = ["_build"]

html_theme = "furo"
pygments_dark_style = "github-dark"
html_title = f"cudago {release}"
html_static_path = ["_static"]
html_css_files = ["cudago.css"]
html_theme_options = {
    f"{mode}_css_variables": {
        "color-brand-primary": color,
        "color-brand-content": color,
        "color-api-name": color,
        "color-api-pre-name": color,
    }
    for mode, color in (("light", "#00707f"), ("dark", "#4fc3d3"))
}
html_copy_source = False
html_show_sourcelink = False
copybutton_prompt_text = r">>> |\.\.\. |\$ "
copybutton_prompt_is_regexp = True
copybutton_selector = "div:not(.elsewhere):not(.highlight-text) > div.highlight > pre"

# Members of the native bases are members of the public classes.
autodoc_default_options = {
    "members": True,
    "inherited-members": "object, str, tuple, BaseException",
}
autodoc_member_order = "groupwise"
autodoc_typehints = "none"  # docstrings have the types already
numpydoc_show_class_members = False  # autodoc shows them

# A name in single backquotes is a link, and one that leads nowhere is an error.
default_role = "py:obj"
nitpicky = True
nitpick_ignore = [("py:obj", "exports_made"), ("py:obj", "exports_released")]  # of a result


def _parameters(described: addnodes.desc) -> set[str]:
    """Return the names of the parameters in a signature, without those of its members."""
    return {
        part.astext()
        for signature in described.children
        if isinstance(signature, addnodes.desc_signature)
        for parameter in signature.findall(addnodes.desc_parameter)
        for part in parameter.findall(addnodes.desc_sig_name)
    }


def _leave_parameters(app: Sphinx, doctree: nodes.document) -> None:
    """Let a docstring's `name` mean its parameter, before it can mean an attribute."""
    for described in doctree.findall(addnodes.desc):
        names = _parameters(described)
        for content in described.children:
            for node in list(content.findall(addnodes.pending_xref)):
                if node.get("reftype") == "obj" and node["reftarget"] in names:
                    node.replace_self(node.children)


def _missing_reference(
    app: Sphinx, env: BuildEnvironment, node: addnodes.pending_xref, contnode: nodes.TextElement
) -> nodes.Node | None:
    """Resolve names of Python's library, and those of cudago in pages of its modules."""
    if node.get("refdomain") != "py":
        return None
    target = node["reftarget"]
    module, dot, _ = target.partition(".")
    if dot and module in sys.stdlib_module_names:  # without an inventory, so without a network
        address = f"https://docs.python.org/3/library/{module}.html#{target}"
        return nodes.reference("", "", contnode, internal=False, refuri=address)
    domain = env.domains["py"]
    return domain.resolve_xref(
        env, node["refdoc"], app.builder, node["reftype"], f"cudago.{target}", node, contnode
    )


def setup(app: Sphinx) -> None:
    """Called by Sphinx."""
    app.connect("doctree-read", _leave_parameters)
    app.connect("missing-reference", _missing_reference)
