# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
project = "rdma_post"
author = "the rdma_post developers"
copyright = author
primary_domain = "c"
html_theme = "alabaster"
