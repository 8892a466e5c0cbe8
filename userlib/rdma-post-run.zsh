#compdef rdma-post-run
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# zsh's completion of rdma-post-run: a program, then what that program takes.

if [[ $CURRENT = 2 && ${words[2]} = -* ]]; then
	compadd -- --help --version --
	return
fi
shift words
(( CURRENT-- ))
if [[ ${words[1]} = -- ]]; then
	shift words
	(( CURRENT-- ))
fi
_normal -p rdma-post-run
