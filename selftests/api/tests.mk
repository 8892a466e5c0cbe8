# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# The API selftests, for this directory's Makefile and for selftests/Makefile.
API_TESTS := posts lists manpages comp cm states sync mr errors device query srq \
	cm_ud cm_own_qp cm_options
