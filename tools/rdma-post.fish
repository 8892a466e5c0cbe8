# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# fish's completion for rdma-post(8): commands and options come from its own help.

function __rdma_post
	set -l words (commandline -opc)
	# Options may stand before the command.
	set -l command (string match -v -- '-*' $words)[2]
	if test -z "$command" -o "$command" = help
		$words[1] --help 2>/dev/null | string replace -rf '^  ([a-z]+) +(.*)' '$1\t$2'
		test -n "$command"
		or printf '%s\n' help version --help --json --version
		return
	end
	switch $words[-1]
		case -p --program
			complete -C (commandline -ct)
			__fish_complete_path (commandline -ct)
			return
		case -e --event
			printf '%s\n' state event post completion
			return
		case -t --to
			__fish_print_hostnames
			return
		case -o --output --from
			__fish_complete_path (commandline -ct)
			return
	end
	if string match -q -- '-*' (commandline -ct)
		$words[1] $command --help 2>/dev/null | string match -ra -- '--[a-z-]+' | sort -u
	else if test $command = cdi
		echo generate
	else if test $command = show -o $words[-1] = --pid
		$words[1] list 2>/dev/null | awk 'NR > 1 { print $2 }'
	end
end
complete -c rdma-post -f -a '(__rdma_post)'
