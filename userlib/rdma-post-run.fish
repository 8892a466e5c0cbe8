# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# fish's completion of rdma-post-run: a program, then what that program takes.

complete -c rdma-post-run -x -a '(__fish_complete_subcommand)'
complete -c rdma-post-run -n __fish_is_first_token -l help
complete -c rdma-post-run -n __fish_is_first_token -l version
