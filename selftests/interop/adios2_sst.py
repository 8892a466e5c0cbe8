# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Usage: adios2_sst.py write|read NAME

One end of a stream by SST of Debian's adios2, whose C interface it calls: four steps,
each with an array of 1 MiB that the reader compares. The reader finds the writer by the
file NAME.sst. SST passes the arrays by RDMA, and all else by TCP.
"""

from ctypes import CDLL, POINTER, byref, c_char_p, c_float, c_int, c_size_t, c_uint64, c_void_p
import glob
import sys

LIBRARY = "/usr/lib/x86_64-linux-gnu/libadios2_serial_c.so.*"
STEPS = 4
NUMBERS = 1 << 17
Array = c_uint64 * NUMBERS

# Values of adios2_c_types.h.
CONSTANT_DIMS = 1
TYPE_UINT64 = 12
MODE_WRITE, MODE_READ, MODE_SYNC = 1, 2, 5
STEP_APPEND, STEP_READ = 0, 2
STATUS_OK = 0

lib = CDLL(sorted(glob.glob(LIBRARY))[0])
for name, arguments in (
    ("init_serial", []),
    ("declare_io", [c_void_p, c_char_p]),
    ("define_variable", [c_void_p, c_char_p, c_int, c_size_t]
     + 3 * [POINTER(c_size_t)] + [c_int]),
    ("inquire_variable", [c_void_p, c_char_p]),
    ("open", [c_void_p, c_char_p, c_int]),
):
    function = getattr(lib, "adios2_" + name)
    function.restype, function.argtypes = c_void_p, arguments


def call(name, *arguments):
    """Call a function that returns an error."""
    error = getattr(lib, "adios2_" + name)(*arguments)
    if error:
        sys.exit(f"adios2_{name}: error {error}")


def step(engine, mode):
    """Begin a step; return whether there is one."""
    status = c_int()
    call("begin_step", engine, mode, c_float(60), byref(status))
    return status.value == STATUS_OK


def numbers(n):
    """The array of step n."""
    return Array(*range(n << 32, (n << 32) + NUMBERS))


def write(io, engine):
    """Write all steps."""
    whole, start = c_size_t(NUMBERS), c_size_t(0)
    variable = c_void_p(lib.adios2_define_variable(
        io, b"numbers", TYPE_UINT64, 1, whole, start, whole, CONSTANT_DIMS))
    for n in range(STEPS):
        if not step(engine, STEP_APPEND):
            sys.exit(f"no step {n}")
        call("put", engine, variable, numbers(n), MODE_SYNC)
        call("end_step", engine)


def read(io, engine):
    """Read and compare all steps."""
    n = 0
    while step(engine, STEP_READ):
        got = Array()
        variable = c_void_p(lib.adios2_inquire_variable(io, b"numbers"))
        call("get", engine, variable, got, MODE_SYNC)
        call("end_step", engine)
        if bytes(got) != bytes(numbers(n)):
            sys.exit(f"step {n} has other numbers")
        n += 1
    print(f"{n} steps compared")


def main():
    """Run one end."""
    role, stream = sys.argv[1:]
    io = c_void_p(lib.adios2_declare_io(lib.adios2_init_serial(), b"stream"))
    call("set_engine", io, b"SST")
    call("set_parameter", io, b"DataTransport", b"rdma")
    mode = MODE_WRITE if role == "write" else MODE_READ
    engine = c_void_p(lib.adios2_open(io, stream.encode(), mode))
    if not engine:
        sys.exit(f"cannot open {stream}")
    (write if role == "write" else read)(io, engine)
    call("close", engine)


main()
