# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# shellcheck shell=dash disable=SC2154
# PyTorch, whose gloo has a transport over verbs.

only_in sid

# Two processes, then four.
torch_gloo() {
	local before
	export GLOO_DEVICE_TRANSPORT=IBVERBS
	export TORCH_GLOO_IBV_NAME="$dev" TORCH_GLOO_IBV_PORT=1 TORCH_GLOO_IBV_INDEX=1
	# Python compiles PyTorch's modules in the first case only.
	export PYTHONPYCACHEPREFIX="$keep/pycache"
	mkdir -p "$keep/pycache"
	chmod 777 "$keep/pycache"
	before=$(packets)
	run python3 -W ignore "$here/torch_collectives.py" "$tmp" 2 4
	lines client '^[01] of 2: 32 rounds compared' 2
	lines client '^[0-3] of 4: 32 rounds compared' 4
	has_sent 1000 "$before"
}

case_ torch pytorch/gloo \
	"all-reduce, broadcast, all-gather of two and four processes, data compared"
torch() {
	torch_gloo
	[ "$library" = system ] || says_not client ' 0 hits'
}
case_ torch_no_cache pytorch/gloo "the same without the registration cache"
torch_no_cache() {
	export RDMA_POST_MR_CACHE=0
	torch_gloo
	lines client ' 0 hits$' 6
}
