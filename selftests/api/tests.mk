# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# Lists the API tests; each runs over both libraries.
API_TESTS := \
	posts \
	posts_flags \
	lists \
	manpages \
	manpages_unconnected \
	comp \
	comp_own_cq \
	cm \
	cm_end \
	cm_channel \
	states \
	sync \
	getaddrinfo \
	mr \
	mr_memory \
	errors \
	ownership \
	device \
	query \
	srq \
	cq_ex \
	async \
	rereg \
	resize \
	qp \
	qp_end \
	ud \
	wr_ex \
	qp_ex \
	cm_ud \
	cm_multicast \
	cm_own_qp \
	cm_options \
	silent \
	threads \
	memory \
	ring \
	wait \
	outputs \
	disconnect \
	requests \
	close \
	neighbour \
	sigio \
	hotplug
