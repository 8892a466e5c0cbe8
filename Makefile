# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
#   make                  the module, the library, the tools, the tests and the examples
#   make module           the module, for the running kernel
#   make lib              the library
#   make tools            rdma-post, which looks at devices and says what is wrong
#   make tests            the tests
#   make examples         the examples
#   make install          the library, its headers, the tools, the udev rule
#   make uninstall        remove these, from the same DESTDIR and PREFIX
#   make modules_install  the module
#   make deb              Debian packages, in build/deb
#   make rpm              RPM packages, in build/rpm
#   make demo             two hosts, a file, the eight posts; FILE=/some/file
#   make demo-containers  podman and bubblewrap with the node, of a user who is not root
#   make shell            a guest with the module, and a shell in it; KERNEL=7.2
#   make gdb              gdb on the kernel of that guest; RUN=post, GDB_FLAGS=-batch
#   make check            what a change must pass, in guests; TESTS=cq, KERNEL=7.2,
#                         CHECK_FLAGS=-r goes on where the last run stopped
#   make watch            the same for TESTS=cq at each save, until Ctrl-C
#   make check-all        all tests, Debian's programs, kernels with KASAN, KCSAN
#   make check-debug      the tests on kernels with KASAN, lockdep, KCSAN; KERNELS=debug
#   make fuzz             fuzz the module; TIME=3600, FUZZ_FLAGS: fuzz.sh's
#   make faults           a storm of 1,000 programs, a peer paused for a minute; KERNELS
#   make interop          Debian's RDMA programs over the library, unmodified; KERNELS,
#                         SUITES="bookworm trixie sid"
#   make bench            against librdmacm, against the kernel; BENCH_FLAGS: bench.sh's
#   make bench-check      instructions for a work request, against a baseline; KERNELS
#   make bench-docs       measure what the documents show, and write it there; KERNELS,
#                         BENCH_FLAGS: docs.sh's
#   make check-packages   the packages, in whole systems of Debian 12 and 13; SUITES
#   make check-containers  podman, bubblewrap, services with the node; TESTS, KERNEL,
#                         SUITE=trixie
#   make lint             checkpatch, sparse, coccinelle, clang's analyzer, ...
#   make sanitize         the library's tests under ASan, UBSan, TSan, valgrind; TESTS
#   make asan             under ASan and UBSan only; make tsan, make valgrind likewise
#   make docs             the documentation as HTML
#   make clean            remove what was built
#   make help             these lines
#
# A target installs the Debian packages that it needs if root calls it, and names them
# otherwise. KDIR is where the kernel's headers are: by default the running kernel's,
# else the newest that are installed.

VERSION	:= 0.1.0

find_kdir = $(firstword \
	$(wildcard /lib/modules/$(shell uname -r)/build) \
	$(shell ls -d /lib/modules/*/build /usr/src/linux-headers-*[!n] \
		2>/dev/null | sort -Vr))
KDIR	?= $(call find_kdir)
W	?= 1
BUILD	:= $(CURDIR)/build
override BUILD := $(abspath $(BUILD))
PREFIX	?= /usr/local
# udev reads those of /usr and /usr/local.
UDEVDIR	?= $(PREFIX)/lib/udev/rules.d
DESTDIR	?=
export BUILD PREFIX DESTDIR

DEPS	:= selftests/vm/deps.sh

all: module lib tools tests examples

help:
	@sed -n 's/^#   //p' Makefile

# What is installed first.
packages:
	@$(DEPS) build

guests:
	@$(DEPS)

headers:
	@$(if $(KDIR),,$(DEPS) headers)

module: packages headers
	$(if $(KDIR),,$(error no kernel headers: install linux-headers-amd64 or set KDIR))
	$(MAKE) -C $(KDIR) M=$(CURDIR) W=$(W) modules

lib: packages
	$(MAKE) -C userlib BUILD=$(BUILD)

tools: lib
	$(MAKE) -C tools BUILD=$(BUILD)

tests: lib
	$(MAKE) -C selftests BUILD=$(BUILD)

examples: lib
	$(MAKE) -C examples BUILD=$(BUILD)

install: lib tools
	$(MAKE) -C userlib BUILD=$(BUILD) install
	$(MAKE) -C tools BUILD=$(BUILD) install
	install -D -m 644 packaging/90-rdma-post.rules \
		$(DESTDIR)$(UDEVDIR)/90-rdma-post.rules

uninstall:
	$(MAKE) -C userlib BUILD=$(BUILD) uninstall
	$(MAKE) -C tools BUILD=$(BUILD) uninstall
	rm -f $(DESTDIR)$(UDEVDIR)/90-rdma-post.rules

deb:
	@$(DEPS) deb
	packaging/deb.sh $(BUILD)/deb

rpm:
	@$(DEPS) build rpm
	packaging/rpm.sh $(BUILD)/rpm

modules_install: headers
	$(MAKE) -C $(KDIR) M=$(CURDIR) modules_install

demo:
	examples/demo.sh $(if $(FILE),"$(FILE)")

demo-containers:
	examples/demo-containers.sh $(KERNEL:%=-k %)

shell:
	selftests/vm/shell.sh $(KERNEL:%=-k %)

gdb:
	selftests/vm/gdb.sh $(KERNEL:%=-k %) $(if $(RUN),-c '$(RUN)') -- $(GDB_FLAGS)

check:
	selftests/tools/check.sh $(CHECK_FLAGS) $(KERNEL:%=-k %) $(TESTS)

# entr ends when a file comes (-d) or goes, and begins again with the new list.
watch:
	$(if $(TESTS),,$(error say what to test: make watch TESTS=cq))
	@$(DEPS) watch
	@until git ls-files -co --exclude-standard Kbuild kmod selftests tools uapi userlib | \
		xargs ls -d 2>/dev/null | entr -d -n $(MAKE) --no-print-directory check; do \
		sleep 1; \
	done

check-all:
	selftests/tools/check.sh $(CHECK_FLAGS) -a

check-debug:
	selftests/tools/check.sh $(patsubst %,-k %,$(or $(KERNELS),debug debug-kcsan))

check-packages:
	selftests/packages/kbuild.sh
	selftests/packages/rpm.sh
	selftests/packages/upstream.sh
	selftests/packages/packages.sh $(SUITES)

check-containers:
	selftests/containers/containers.sh $(KERNEL:%=-k %) $(SUITE:%=-s %) $(TESTS)

fuzz: guests
	selftests/fuzz/fuzz.sh -t $(or $(TIME),600) $(FUZZ_FLAGS)

faults: guests lib tests
	selftests/wire/faults.sh $(KERNELS)

interop: guests lib
	selftests/interop/interop.sh -s "$(or $(SUITES),bookworm trixie sid)" $(KERNELS)

bench: guests
	selftests/bench/bench.sh $(BENCH_FLAGS)

bench-check: guests
	selftests/bench/icount.sh $(KERNELS)

bench-docs: guests
	selftests/bench/docs.sh $(BENCH_FLAGS) $(KERNELS)

lint:
	selftests/tools/lint.sh

sanitize: asan tsan valgrind

asan tsan valgrind: guests
	selftests/tools/sanitize.sh $@ $(TESTS)

docs:
	@$(DEPS) docs
	$(MAKE) -C Documentation BUILD=$(BUILD)

clean:
	$(if $(KDIR),$(MAKE) -C $(KDIR) M=$(CURDIR) clean)
	rm -rf $(BUILD)

.PHONY: all help packages guests headers module lib tools tests examples install \
	uninstall modules_install deb rpm demo demo-containers shell gdb check watch \
	check-all check-debug check-packages check-containers fuzz faults interop bench \
	bench-check bench-docs lint sanitize asan tsan valgrind docs clean
