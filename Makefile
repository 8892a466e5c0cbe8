# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
#   make                 the module, the library, the tests and the examples
#   make install         the library, its headers, the udev rule
#   make modules_install the module
#   make demo            two hosts, a file, the eight posts
#   make check           boot guests and run the tests that find most, in minutes;
#                        TESTS=cq: of one subject; KERNEL=7.2: on that kernel
#   make check-all       all tests, Debian's programs, a kernel with KASAN and lockdep
#   make check-debug     the tests on kernels with KASAN, lockdep, KCSAN
#   make fuzz TIME=3600  fuzz the module for so many seconds
#   make faults          longer: a storm of 1,000 programs, a peer paused for a minute
#   make interop         Debian's RDMA programs over the library, unmodified
#   make bench           how fast it is: against librdmacm over uverbs, against
#                        loops in the kernel; BENCH_FLAGS are bench.sh's
#   make bench-check     instructions for a work request, against a baseline
#   make lint            checkpatch, sparse, coccinelle, clang's analyzer, ...
#   make sanitize        the library's tests under ASan, UBSan, TSan, valgrind
#   make docs            the documentation as HTML
#   make clean
#
# KDIR is where the kernel's headers are: by default the running kernel's, else
# the newest that are installed.

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
UDEVDIR	?= /usr/lib/udev/rules.d
DESTDIR	?=
export BUILD PREFIX DESTDIR

all: module lib tests examples

module:
	$(if $(KDIR),,$(error no kernel headers: install linux-headers-amd64 or set KDIR))
	$(MAKE) -C $(KDIR) M=$(CURDIR) W=$(W) modules

lib:
	$(MAKE) -C userlib BUILD=$(BUILD)

tests: lib
	$(MAKE) -C selftests BUILD=$(BUILD)

examples: lib
	$(MAKE) -C examples BUILD=$(BUILD)

install: lib
	$(MAKE) -C userlib BUILD=$(BUILD) install
	install -D -m 644 packaging/90-rdma-post.rules \
		$(DESTDIR)$(UDEVDIR)/90-rdma-post.rules

modules_install:
	$(MAKE) -C $(KDIR) M=$(CURDIR) modules_install

demo:
	examples/demo.sh $(if $(FILE),"$(FILE)")

check:
	selftests/tools/check.sh $(KERNEL:%=-k %) $(TESTS)

check-all:
	selftests/tools/check.sh -a

check-debug:
	selftests/tools/check.sh $(patsubst %,-k %,$(or $(KERNELS),debug debug-kcsan))

fuzz:
	selftests/fuzz/fuzz.sh -t $(or $(TIME),600) $(FUZZ_FLAGS)

faults: lib tests
	selftests/wire/faults.sh $(KERNELS)

interop: lib
	selftests/interop/interop.sh $(KERNELS)

bench:
	selftests/bench/bench.sh $(BENCH_FLAGS)

bench-check:
	selftests/bench/icount.sh $(KERNELS)

lint:
	selftests/tools/lint.sh

sanitize: asan tsan valgrind

asan tsan valgrind:
	selftests/tools/sanitize.sh $@ $(TESTS)

docs:
	$(MAKE) -C Documentation BUILD=$(BUILD)

clean:
	$(if $(KDIR),$(MAKE) -C $(KDIR) M=$(CURDIR) clean)
	rm -rf $(BUILD)

.PHONY: all module lib tests examples install modules_install demo check \
	check-all check-debug fuzz faults interop bench bench-check lint sanitize asan \
	tsan valgrind docs clean
