# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# The API selftests, for this directory's Makefile and for selftests/Makefile.
API_TESTS := posts lists manpages comp cm states sync mr errors ownership device query srq cq_ex async rereg resize
API_TESTS += qp qp_end ud
API_TESTS += wr_ex
API_TESTS += cm_ud cm_own_qp cm_options silent
API_TESTS += threads
API_TESTS += memory ring spin outputs disconnect requests close neighbour sigio
