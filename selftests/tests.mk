# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# The tests of the kernel interface, in the order in which they run, and those of
# them that tell something about 32-bit programs.
RPOST_TESTS := abi device tables objects handles handover race mr keys probe qp modify post sq_full signaled post_batch datagram srq async resize race_own cm cm_ud cm_own cm_errors cq cq_share sleepers attack_mmap attack_ring attack_memory attack_memory_io attack_process attack_keys attack_handles attack_args attack_words attack_threads sring sring_shared ring_loops rdmacg limits users many_events netns exit unload admit unreachable removal_many storm faults fastreg inject vices removal failnth
RPOST_TESTS_32 := abi device tables objects mr keys qp modify post post_batch datagram srq async resize cm cm_ud cm_own cm_errors cq attack_mmap attack_ring attack_memory attack_memory_io attack_handles attack_args attack_words sring
