# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# shellcheck shell=dash disable=SC2154
# Debian's librpma, used by the project's program rpma.

only_in bookworm trixie

rpma_test() { run "$here/rpma" "$addr" "$port" "$1"; }

case_ rpma_peer librpma "peers and memory"
rpma_peer() { rpma_test peer; }
case_ rpma_endpoint librpma "endpoints"
rpma_endpoint() { rpma_test endpoint; }
case_ rpma_connect librpma "connections, refused and accepted; private data"
rpma_connect() { rpma_test connect; }
case_ rpma_read librpma "reads of 0 and more bytes, both completion flags, refusals" smoke
rpma_read() { rpma_test read; }
case_ rpma_write librpma "writes, with immediate data, atomic" smoke
rpma_write() { rpma_test write; }
case_ rpma_flush librpma "flushes, for visibility and persistency"
rpma_flush() { rpma_test flush; }
case_ rpma_message librpma "messages, empty ones, with immediate data" smoke
rpma_message() { rpma_test message; }
case_ rpma_channel librpma "a shared completion channel"
rpma_channel() { rpma_test channel; }
case_ rpma_srq librpma "a shared receive queue, two connections"
rpma_srq() { rpma_test srq; }
