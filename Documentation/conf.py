# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
project = "rdma_post"
author = "the rdma_post developers"
copyright = author
primary_domain = "c"
# Most blocks are what a terminal shows.
highlight_language = "none"
html_theme = "alabaster"
html_static_path = ["_static"]
html_css_files = ["wrap.css"]
# Wide enough for the screens of rdma-post.
html_theme_options = {"page_width": "1160px", "body_max_width": "900px"}
