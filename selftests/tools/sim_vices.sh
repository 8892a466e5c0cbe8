#!/bin/sh
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# shellcheck shell=dash
#
# Usage: sim_vices.sh [FIRST [LAST]]
#
# Loads rdmasim, in a guest, with one set of vices after the other, and runs the programs
# that each set concerns. FIRST and LAST number the lines of the table.

# A set has vices that do not hide each other. The program vices sets vices itself, so it
# runs on a device without any. keys, keys_remote and mr expect a completion for a bad
# key, but a device without fast registration refuses the post.
table='
engine=hardirq notify=locked round_up=1 no_sge_rd=1 | cm cm_states cq cq_prompt moderate post post_queues srq srq_limits datagram datagram_addresses
engine=softirq notify=work slow_destroy=20 last_wqe_late=200 | srq srq_limits modify modify_work exit removal
engine=softirq notify=softirq max_sge=4 no_dma_lkey=1 max_pages=16 | cq cq_prompt post post_queues mr keys keys_remote datagram datagram_addresses
engine=inline notify=work max_wr=128 | device qp cq cq_prompt moderate post post_queues srq srq_limits
notify=softirq purge=1 no_last_wqe=1 no_user_mr=1 | srq srq_limits modify modify_work exit
driver_id=1 notify=hardirq | mr keys keys_remote admit
driver_id=1 no_fast_reg=1 | device post post_queues exit
'

load() {
	rdma link del sim0
	rmmod rdmasim || return
	# shellcheck disable=SC2086
	insmod /vm/rdmasim.ko $1 || return
	rdma link add sim0 type sim netdev dummy0
}

first=${1:-1} last=${2:-99} n=0 failed=0
while IFS='|' read -r vices programs; do
	[ -n "$programs" ] || continue
	n=$((n + 1))
	if [ "$n" -lt "$first" ] || [ "$n" -gt "$last" ]; then
		continue
	fi
	echo "# vices: ${vices:-none}"
	load "$vices" || echo "not ok $n load $vices"
	# shellcheck disable=SC2046,SC2086
	./run_tests.sh $(printf './%s ' $programs) || failed=1
done <<-END
	$table
END
exit "$failed"
