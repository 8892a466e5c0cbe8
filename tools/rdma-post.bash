# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# shellcheck shell=bash
# Completion for rdma-post(8): commands and options come from its own help.

_rdma_post() {
	local tool=$1 word=$2 before=$3 command='' others='' i
	COMPREPLY=()
	# Options may stand before the command.
	for ((i = 1; i < COMP_CWORD; i++)); do
		[[ ${COMP_WORDS[i]} = -* ]] || { command=${COMP_WORDS[i]} && break; }
	done
	if [[ -n $command && $command != help ]]; then
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
		-o | --output | --from)
			mapfile -t COMPREPLY < <(compgen -f -- "$word")
			return
			;;
		esac
		if [[ $command = cdi && $word != -* ]]; then
			mapfile -t COMPREPLY < <(compgen -W generate -- "$word")
			return
		fi
		if [[ $command = show || $before = --pid ]] && [[ $word != -* ]]; then
			mapfile -t COMPREPLY < <(compgen -W "$("$tool" list 2>/dev/null |
				awk 'NR > 1 { print $2 }')" -- "$word")
			return
		fi
		mapfile -t COMPREPLY < <(compgen -W "$("$tool" "$command" --help 2>/dev/null |
			grep -oE -e '--[a-z-]+' | sort -u)" -- "$word")
	else
		[ -n "$command" ] || others='help version --help --json --version'
		mapfile -t COMPREPLY < <(compgen -W "$others $("$tool" --help 2>/dev/null |
			sed -n 's/^  \([a-z]*\) .*/\1/p')" -- "$word")
	fi
}
complete -o filenames -F _rdma_post rdma-post
