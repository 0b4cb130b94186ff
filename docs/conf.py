"""How the documentation is built (`make site`): Sphinx reads these Markdown pages, and every warning is an error."""

from __future__ import annotations

from lienworker import __version__

project = "lienworker"
version = release = __version__
extensions = ["myst_parser", "sphinx_click"]
myst_heading_anchors = 3
# In the help of commands `this` is code, and -- stays as it is typed.
default_role = "code"
smartquotes = False
html_theme = "furo"
html_title = f"lienworker {__version__}"
html_copy_source = False
html_show_copyright = False
# Links to files of the repository that are no pages are downloads; what is nowhere is an error.
nitpicky = True
