# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# shellcheck shell=bash
# bash's completion of rdma-post-run: a program, then what that program takes.

_rdma_post_run() {
	local offset=1
	if [[ $COMP_CWORD = 1 && ${COMP_WORDS[1]} = -* ]]; then
		mapfile -t COMPREPLY < <(compgen -W '--help --version --' -- "${COMP_WORDS[1]}")
		return
	fi
	[[ ${COMP_WORDS[1]} != -- ]] || offset=2
	_command_offset "$offset"
}
complete -F _rdma_post_run rdma-post-run
