# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# shellcheck shell=bash disable=SC2154
# One guest: QEMU, its arguments, and the check of its kernel log. Sourced by
# run.sh.

# Lines of a kernel log that fail a run.
splat_pattern='BUG:|BUG at |WARNING: |Oops: |Oops\b|general protection fault'
# Linux 6.1's header of any other trap, "int3: 0000 [#1] PREEMPT"
splat_pattern+='|: [0-9a-f]{4} \[#[0-9]+\]'
splat_pattern+='|KASAN:|KCSAN:|UBSAN:|KFENCE:|KMSAN:|DMA-API:.*(error|leak|warn)'
splat_pattern+='|possible (circular|recursive|irq) locking|possible irq lock inversion'
splat_pattern+='|inconsistent lock state|bad unlock balance|held lock freed'
splat_pattern+='|lock held when returning|suspicious RCU usage|INFO: suspicious'
splat_pattern+='|sleeping function called|scheduling while atomic'
splat_pattern+='|blocked for more than|soft lockup|hard LOCKUP|rcu.*stall|workqueue lockup'
splat_pattern+='|new suspected memory leaks|memory leak detector disabled|kmemleak: unreferenced object'
splat_pattern+='|refcount_t: |list_(add|del) corruption|ODEBUG:|SLUB:.*(corrupt|error)'
splat_pattern+='|unregister_netdevice: waiting|Kernel panic|page allocation failure'
splat_pattern+='|Memory cgroup out of memory|Out of memory: Killed|unable to handle'
splat_pattern+='|detected stalls|Objects remaining in .* on __kmem_cache_shutdown'

# Print "kvm" or "tcg". Some hosts have a KVM that does not run a stock kernel,
# so boot one once, and store the result for this host.
accelerator() {
	local mark answer=tcg
	if [ ! -w /dev/kvm ]; then
		echo tcg
		return
	fi
	mark=$cache_dir/accel-$(uname -n)-$(uname -r)
	if [ ! -s "$mark" ]; then
		say "trying KVM"
		timeout -k 1 10 qemu-system-x86_64 -M q35 -accel kvm -cpu host \
			-nodefaults -display none -no-reboot -m 256 \
			-kernel "$1" -append "panic=-1 quiet" </dev/null >/dev/null 2>&1 &&
			answer=kvm
		echo "$answer" >"$mark"
	fi
	cat "$mark"
}

# Print the frequency of an emulated guest's time stamp counter in kHz, measured
# once; nothing if the host has none. A guest that measured it on a busy host
# could get a fraction of it, and its clock would be several times too fast.
tsc_khz() {
	local file
	[ "$(uname -m)" = x86_64 ] || return 0
	file=$cache_dir/tsc-$(cat /proc/sys/kernel/random/boot_id)
	if [ ! -s "$file" ]; then
		gcc -O2 -o "$file.$$.bin" "$vm_dir/tsc.c" && "$file.$$.bin" >"$file.$$"
		rm -f "$file.$$.bin"
		mv "$file.$$" "$file"
	fi
	cat "$file"
}

# Print the guest's kernel command line.
kernel_args() {
	echo -n "console=ttyS0 panic=-1 ignore_loglevel log_buf_len=4M nokaslr" \
		"mitigations=off random.trust_cpu=on tsc=reliable no_timer_check" \
		"cryptomgr.notests 8250.nr_uarts=1 i8042.nopnp i8042.noaux" \
		"i8042.nokbd dummy.numdummies=0"
	if [ -n "$icount" ]; then
		echo -n " lpj=4000000 tsc_early_khz=1000000 norandmaps"
	elif [ "$1" != kvm ]; then
		echo -n " lpj=4000000 tsc_early_khz=$(tsc_khz || echo 0)"
	fi
	# The boot and the loading of modules patch the kernel's code hundreds of
	# times, and each time wait for all processors. /init starts the others.
	[ "$smp" = 1 ] || echo -n " maxcpus=1 noreplace-smp"
	# Per-CPU arrays of free objects ("sheaves") keep stale pointers to
	# objects, which hides leaks from kmemleak. Caches with consistency
	# checks (F) have no sheaves. Kernels know the parameter by one of its
	# two names.
	# KASAN reports more than once: own_log may leave the first one out.
	[[ $kernel != debug* ]] || echo -n " slab_debug=F slub_debug=F kasan_multi_shot"
}

# qemu_run SECONDS ARGS...: become a guest, whose output goes to descriptor 3, or
# whose terminal is standard input.
qemu_run() {
	local seconds=$1 accel out=file,path=/dev/fdset/1,append=on
	shift
	accel=$(accelerator "$image")
	local cpu=max
	[ "$input" = /dev/null ] ||
		out=stdio,mux=on,signal=off,logfile=$out_dir/output.log
	if [ -n "$icount" ]; then
		accel=tcg,thread=single
		set -- "$@" -icount shift=0,sleep=off -seed 42 \
			-rtc base=2024-01-01T00:00:00,clock=vm
	elif [ "$accel" = kvm ]; then
		cpu=host
	else
		accel=tcg,thread=multi
	fi
	exec timeout --foreground -k 2 "$seconds" qemu-system-x86_64 \
		-name "guest=$name" -M q35,hpet=off,smm=off,usb=off,sata=off,smbus=off \
		-nodefaults -no-user-config -display none -no-reboot \
		-accel "$accel" -cpu "$cpu" -smp "$smp" -m "$memory" \
		-kernel "$image" -initrd "$out_dir/initramfs.cpio" \
		-append "$(kernel_args "$accel")${append:+ $append}" \
		-add-fd fd=3,set=1 \
		-chardev file,id=console,path="$out_dir/kernel.log" \
		-serial chardev:console \
		-device virtio-serial-pci,max_ports=8 \
		-chardev "$out,id=out" \
		-device virtconsole,nr=0,chardev=out \
		-chardev file,id=status,path="$out_dir/status" \
		-device virtserialport,nr=1,chardev=status \
		-chardev file,id=files,path="$out_dir/out.tar" \
		-device virtserialport,nr=2,chardev=files \
		"$@" 2>"$out_dir/qemu.log"
}

# Print the log without these reports, which are not the project's:
# - the lines that the guest's watchdog causes;
# - kmemleak's message at time 0, which the command line causes;
# - OOM kills of a memory cgroup, which the tests count;
# - data races (KCSAN) without the module in the trace, and always the one of
#   hrtimer_wakeup() with the sleeper on the stack of the task that wakes, and that of
#   hmm_range_fault(), which fills the pages of a region on demand without the lock that
#   their invalidation holds, and then begins again;
# - warnings in rxe_sched_task(), and KASAN reports below it, without the module in
#   the trace and without another report inside. rxe queues a packet, with its
#   reference to the queue pair, before it schedules the task. If the task runs
#   already and the queue pair is being destroyed, that reference may be gone.
# - KASAN reports below cm_find_remote_id() of ib_cm, under the same two conditions: it
#   reads the root of a tree before it takes the lock of the tree.
# - warnings in rxe_post_recv() below ib_mad_post_receive_mads(), under the same two
#   conditions: ib_mad_port_close() destroys the queue pair for MADs while a handler of
#   one that has come, ib_mad_recv_done(), may still post the next receive.
own_log() {
	sed '/vm-init: timeout/,$d
	/^\[ *0\.000000\] kmemleak: Kernel memory leak detector disabled/d
	/\] Memory cgroup out of memory: Killed process/d' \
		"$out_dir/kernel.log" | awk '
		report == "" && (/BUG: K(ASAN|CSAN):/ || /WARNING: .* rxe_(sched_task|post_recv)\+/) {
			report = trace = $0
			past = 0
			next
		}
		report == "" { print; next }
		# KASAN then prints the traces of allocation and free.
		/Allocated by task/ { past = 1 }
		{ report = report "\n" $0 }
		!past { trace = trace "\n" $0 }
		/=========|end trace/ {
			ours = trace ~ /\[rdma_post\]/
			if (trace ~ /^[^\n]*KASAN:/ &&
			    trace !~ /(\] | in) *(rxe_sched_task|cm_find_remote_id)\+/)
				ours = 1
			if (trace ~ /^[^\n]* rxe_post_recv\+/ && trace !~ /\n.*\] *ib_mad_post_receive_mads\+/)
				ours = 1
			if (trace ~ /^[^\n]*KCSAN: data-race in hrtimer_wakeup \/ schedule_hrtimeout/ ||
			    trace ~ /^[^\n]*KCSAN: data-race in hmm_vma_walk_[a-z]+ \/ ib_umem_odp_unmap_dma/)
				ours = 0
			if (ours || trace ~ /\n.*(BUG|WARNING):/)
				print report
			report = ""
		}
		END { print report }'
}

# Show the lines of the log that fail a run; true if there are any.
splats() {
	local lines
	lines=$(own_log | grep -E -m 40 "$splat_pattern" || true)
	[ -n "$lines" ] || return 1
	printf '%s\n' "$lines" >&2
	# What follows the first one: where it was, and who called.
	(own_log | grep -E -m 1 -A 40 "$splat_pattern" || true) | tail -n +2 >&2
}
