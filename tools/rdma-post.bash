# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# shellcheck shell=bash
# Completion for rdma-post(8): commands and options come from its own help.

_rdma_post() {
	local tool=$1 word=$2 before=$3
	COMPREPLY=()
	if ((COMP_CWORD > 1)); then
		case $before in
		-p | --program)
			mapfile -t COMPREPLY < <(compgen -c -- "$word"; compgen -f -- "$word")
			return
			;;
		-e | --event)
			mapfile -t COMPREPLY < <(compgen -W "state event post completion" -- "$word")
			return
			;;
		-t | --to)
			mapfile -t COMPREPLY < <(compgen -A hostname -- "$word")
			return
			;;
		-o | --output)
			mapfile -t COMPREPLY < <(compgen -f -- "$word")
			return
			;;
		esac
		if [ "${COMP_WORDS[1]}" = cdi ] && [[ $word != -* ]]; then
			mapfile -t COMPREPLY < <(compgen -W generate -- "$word")
			return
		fi
		if [[ ${COMP_WORDS[1]} = show || $before = --pid ]] && [[ $word != -* ]]; then
			mapfile -t COMPREPLY < <(compgen -W "$("$tool" list 2>/dev/null |
				awk 'NR > 1 { print $2 }')" -- "$word")
			return
		fi
		mapfile -t COMPREPLY < <(compgen -W "$("$tool" "${COMP_WORDS[1]}" --help 2>/dev/null |
			grep -oE -e '--[a-z]+' | sort -u)" -- "$word")
	else
		mapfile -t COMPREPLY < <(compgen -W "--help --version $("$tool" --help 2>/dev/null |
			sed -n 's/^  \([a-z]*\) .*/\1/p')" -- "$word")
	fi
}
complete -o filenames -F _rdma_post rdma-post
