# Sphinx's settings for the site; tools/site/build.py copies this file beside the pages.
project = "Levin"
author = "the authors of Levin"
extensions = ["myst_parser", "sphinx_copybutton"]
html_theme = "furo"
html_title = "Levin"
html_static_path = ["site.css"]
html_css_files = ["site.css"]
html_show_copyright = False
html_show_sphinx = False
html_copy_source = False
html_theme_options = {
    "light_css_variables": {"color-brand-primary": "#1d4ed8", "color-brand-content": "#1d4ed8"},
    "dark_css_variables": {"color-brand-primary": "#93c5fd", "color-brand-content": "#93c5fd"},
}
myst_heading_anchors = 4
myst_enable_extensions = ["html_image"]
pygments_style = "friendly"
pygments_dark_style = "monokai"
suppress_warnings = ["misc.highlighting_failure"]  # excerpts that are no whole program
