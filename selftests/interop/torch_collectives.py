# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Usage: torch_collectives.py DIRECTORY PROCESSES...

PyTorch's collective operations over gloo: broadcast, all-reduce and all-gather of tensors
of several sizes, between each of these numbers of processes. Each process compares each
element with what it should be. Half of the tensors are used once, half of them again and
again. Prints, of each process, how often rdma_post's registration cache had a region.
"""

import glob
import os
import signal
import sys
import time
import traceback

import torch
import torch.distributed as dist

SIZES = [1, 1000, 16384, 100003]
ROUNDS = 8


def made_by(rank, turn, size):
    """What a process contributes, in integers, so that a sum is exact."""
    return torch.arange(size, dtype=torch.int64) * (rank + 1) + turn


def compare(what, got, want):
    if not torch.equal(got, want):
        wrong = (got != want).nonzero()
        at = int(wrong[0])
        sys.exit(f"{what}: {len(wrong)} of {len(want)} elements are wrong, the first one "
                 f"at {at}, {int(got[at])} and not {int(want[at])}")


def new_tensors(processes, size):
    return (torch.zeros(size, dtype=torch.int64),
            [torch.zeros(size, dtype=torch.int64) for _ in range(processes)])


def collectives(rank, processes, size, turn, tensors):
    whole, parts = tensors
    mine = made_by(rank, turn, size)
    root = turn % processes
    whole.copy_(mine)
    dist.broadcast(whole, src=root)
    compare(f"broadcast of {size}", whole, made_by(root, turn, size))
    whole.copy_(mine)
    dist.all_reduce(whole)
    compare(f"all-reduce of {size}", whole,
            sum(made_by(other, turn, size) for other in range(processes)))
    dist.all_gather(parts, mine)
    for other in range(processes):
        compare(f"all-gather of {size}, part {other}", parts[other],
                made_by(other, turn, size))


def cache_hits():
    """Several descriptors may be of one open file, which counts."""
    hits = 0
    for name in glob.glob("/proc/self/fdinfo/*"):
        try:
            with open(name) as info:
                for line in info:
                    if line.startswith("rpost-total-cache-hits:"):
                        hits = max(hits, int(line.split()[1]))
        except FileNotFoundError:
            pass  # of the directory that glob has read
    return hits


def member(directory, rank, processes):
    dist.init_process_group("gloo", rank=rank, world_size=processes,
                            init_method=f"file://{directory}/.store{processes}")
    start = time.monotonic()
    for size in SIZES:
        kept = new_tensors(processes, size)
        for turn in range(ROUNDS):
            collectives(rank, processes, size, turn,
                        kept if turn % 2 else new_tensors(processes, size))
    seconds = time.monotonic() - start
    hits = cache_hits()
    dist.destroy_process_group()
    print(f"{rank} of {processes}: {len(SIZES) * ROUNDS} rounds compared in "
          f"{seconds:.2f} s, {hits} hits", flush=True)


def start_member(directory, rank, processes):
    child = os.fork()
    if child == 0:
        status = 1
        try:
            member(directory, rank, processes)
            status = 0
        except BaseException:
            traceback.print_exc()
        # Python's own end would take long, for what the parent has imported.
        os._exit(status)
    return child


def run(directory, processes):
    children = {start_member(directory, rank, processes) for rank in range(processes)}
    while children:
        child, status = os.wait()
        children.remove(child)
        if status:
            for other in children:
                os.kill(other, signal.SIGKILL)
            sys.exit(f"a process of {processes} ended with status {status:#x}")


if __name__ == "__main__":
    for number in sys.argv[2:]:
        run(sys.argv[1], int(number))
