# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# shellcheck shell=dash disable=SC2154
# libfabric and UCX, used by the project's program buffers: with their registration cache, with
# none, and with the module's instead. The output "rates" has the times
# (Documentation/registration-cache.rst).

# each_way PROGRAM OFF...: all transfers; OFF are the settings without the library's cache
each_way() {
	local program=$1
	shift
	export RDMA_POST_MR_CACHE=0
	transfers "$program" "the library's"
	transfers "$program" none "$@"
	lines rates ' 0 hits$' 8
	[ "$library" = rdma_post ] || return 0
	export RDMA_POST_MR_CACHE=1
	transfers "$program" "the module's" "$@"
}

# transfers PROGRAM CACHE [VARIABLE=VALUE...]
transfers() {
	local program=$1 cache=$2 setting
	shift 2
	(
		for setting in "$@"; do
			export "${setting?}"
		done
		run "$here/$program" "$addr" "$port" 50
	)
	sed "s/^/cache: $cache: /" "$tmp/client" >>"$tmp/rates"
}

case_ fabric_buffers libfabric "buffers allocated, used and freed, each cache; data compared"
fabric_buffers() {
	each_way buffers_fabric FI_MR_CACHE_MAX_COUNT=0 FI_MR_CACHE_MONITOR=disabled
	[ "$library" = system ] || lines rates "the module's: .*malloc.* [1-9][0-9]+ hits\$" 2
}

only_in bookworm trixie
case_ ucx_buffers libucp "buffers allocated, used and freed, each cache; data compared"
ucx_buffers() {
	ucx_over rc_verbs,ud_verbs
	# Nothing forks, and large messages are not copied.  Each release has only some of the
	# settings below.
	export UCX_IB_FORK_INIT=n UCX_RNDV_THRESH=8192 UCX_WARN_UNUSED_ENV_VARS=n
	each_way buffers_ucx UCX_RCACHE_ENABLE=n UCX_IB_REG_METHODS=direct UCX_MEM_EVENTS=n
	# It registers all memory for remote access, of which the module keeps nothing.
	lines rates ' 0 hits$' "$(wc -l <"$tmp/rates")"
}
