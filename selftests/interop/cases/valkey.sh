# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# shellcheck shell=dash disable=SC2154
# Valkey, a key-value store, over RDMA. Debian builds it without, so these programs are built
# on the host, from sid's source package (build.sh).

# Start the server; cli is the command of its client.
valkey_server() {
	cli="$here/bin/valkey-cli --rdma -h $addr -p $port"
	# Each end of a connection registers 2 MiB.
	ulimit -l 262144
	serve "$port" "$here/bin/valkey-server" --port 0 --rdma-port "$port" \
		--rdma-bind "$addr" --save '' --dir "$tmp"
}

# valkey_benchmark ARGS...: SET and GET; fail unless there is a rate of both
valkey_benchmark() {
	valkey_server
	run "$here/bin/valkey-benchmark" --rdma -h "$addr" -p "$port" -t set,get --csv "$@"
	lines client '^"[SG]ET","[1-9][0-9.]*"' 2
	stop
}

case_ valkey_1 valkey-server/valkey-benchmark "SET and GET, 1 client" smoke
valkey_1() { valkey_benchmark -c 1 -n 3000; }
case_ valkey_20 valkey-server/valkey-benchmark "SET and GET, 20 clients"
valkey_20() { valkey_benchmark -c 20 -n 6000; }
case_ valkey_100 valkey-server/valkey-benchmark "SET and GET, 100 clients"
valkey_100() { valkey_benchmark -c 100 -n 2000; }
case_ valkey_pipeline valkey-server/valkey-benchmark "SET and GET by 16, 20 clients"
valkey_pipeline() { valkey_benchmark -c 20 -n 24000 -P 16; }

case_ valkey_large valkey-server/valkey-cli "a value of 400 kB, compared" smoke
valkey_large() {
	valkey_server
	head -c 300000 /dev/urandom | base64 -w 0 >"$tmp/value"
	# shellcheck disable=SC2016,SC2086
	run sh -c '"$@" <"$0"' "$tmp/value" $cli -x SET key
	says client '^OK$'
	# shellcheck disable=SC2086
	run $cli --raw GET key
	tr -d '\n' <"$tmp/client" | cmp - "$tmp/value" || fail "another value"
	stop
}

# clients NUMBER STATE: wait until the server has so many, or fail
clients() {
	local n=0
	# shellcheck disable=SC2086
	until run $cli INFO clients && grep -q "^$2:$1[[:space:]]" "$tmp/client"; do
		n=$((n + 1))
		[ $n -lt $((limit * 20)) ] || fail "not $1 $2"
		sleep 0.05
	done
}

# A client that is killed while it connects may crash the server of 9.1.2, over either library.
case_ valkey_killed valkey-server/valkey-cli "clients that wait, killed in a loop"
valkey_killed() {
	local n
	valkey_server
	for n in 1 2 3 4 5 6 7 8; do
		# shellcheck disable=SC2086
		start waiting $cli BLPOP none 0
		clients 1 blocked_clients
		stop waiting
		clients 0 blocked_clients
	done
	clients 1 connected_clients
	stop
}
