# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
project = "rdma_post"
author = "the rdma_post developers"
copyright = author
primary_domain = "c"
html_theme = "alabaster"
# Wide enough for the screens of rdma-post.
html_theme_options = {"page_width": "1160px", "body_max_width": "900px"}
