#compdef rdma-post
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# zsh's completion for rdma-post(8): commands and options come from its own help.

local command word
# Options may stand before the command.
for word in ${words[2,CURRENT-1]}; do
	[[ $word = -* ]] || { command=$word; break }
done
if [[ -z $command || $command = help ]]; then
	compadd -- $(_call_program commands $words[1] --help 2>/dev/null |
		sed -n 's/^  \([a-z]*\) .*/\1/p')
	[[ -n $command ]] || compadd -- help version --help --json --version
	return
fi
case ${words[CURRENT-1]} in
(-p|--program) _command_names -e; _files; return ;;
(-e|--event) compadd -- state event post completion; return ;;
(-t|--to) _hosts; return ;;
(-o|--output|--from) _files; return ;;
esac
if [[ ${words[CURRENT]} = -* ]]; then
	compadd -- $(_call_program options $words[1] $command --help 2>/dev/null |
		grep -oE -e '--[a-z-]+' | sort -u)
elif [[ $command = cdi ]]; then
	compadd -- generate
elif [[ $command = show || ${words[CURRENT-1]} = --pid ]]; then
	compadd -- $(_call_program pids $words[1] list 2>/dev/null | awk 'NR > 1 { print $2 }')
fi
