# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""hello.c in Python, through ctypes: one message each way.

Usage: python3 hello.py          waits for one client
       python3 hello.py SERVER   is the client

librdma_post has functions where the headers of librdmacm and libibverbs have
inlines (rdma_post_send, rdma_get_recv_comp, ...), so nothing has to be compiled.
Either side may be the program in C.
"""
import ctypes
import os
import select
import sys
from ctypes import POINTER, byref, c_int, c_size_t, c_uint8, c_uint32, c_void_p

PORT = b"7472"
RAI_PASSIVE = 1
RDMA_PS_TCP = 0x106
IBV_QPT_RC = 2
IBV_SEND_INLINE = 8

lib = ctypes.CDLL("librdma_post.so.1", use_errno=True)
libc = ctypes.CDLL(None)
libc.gai_strerror.restype = ctypes.c_char_p


# The structs, as far as they are used.  Those that the library fills in are complete.
class AddrInfo(ctypes.Structure):
    _fields_ = [("flags", c_int), ("family", c_int), ("qp_type", c_int),
                ("port_space", c_int), ("lengths", c_uint32 * 2),
                ("pointers", c_void_p * 9)]


class Channel(ctypes.Structure):
    _fields_ = [("fd", c_int)]


class Id(ctypes.Structure):
    _fields_ = [("verbs", c_void_p), ("channel", POINTER(Channel))]


class QpInitAttr(ctypes.Structure):
    _fields_ = [("context", c_void_p), ("send_cq", c_void_p), ("recv_cq", c_void_p),
                ("srq", c_void_p), ("max_send_wr", c_uint32), ("max_recv_wr", c_uint32),
                ("max_send_sge", c_uint32), ("max_recv_sge", c_uint32),
                ("max_inline_data", c_uint32), ("qp_type", c_int), ("sq_sig_all", c_int)]


class ConnParam(ctypes.Structure):
    _fields_ = [("private_data", c_void_p), ("private_data_len", c_uint8),
                ("responder_resources", c_uint8), ("initiator_depth", c_uint8),
                ("flow_control", c_uint8), ("retry_count", c_uint8),
                ("rnr_retry_count", c_uint8), ("srq", c_uint8), ("qp_num", c_uint32)]


class Wc(ctypes.Structure):
    _fields_ = [("wr_id", ctypes.c_uint64), ("status", c_int), ("opcode", c_int),
                ("vendor_err", c_uint32), ("byte_len", c_uint32), ("imm_data", c_uint32),
                ("qp_num", c_uint32), ("src_qp", c_uint32), ("flags", c_int),
                ("pkey_index", ctypes.c_uint16), ("slid", ctypes.c_uint16),
                ("sl", c_uint8), ("dlid_path_bits", c_uint8)]


def call(name, *arguments):
    """Calls a function whose result is a number or, for rdma_reg_msgs, a pointer."""
    result = getattr(lib, name)(*arguments)
    if result is None or result == -1:
        error = ctypes.get_errno()
        sys.exit(f"hello.py: {name}: {os.strerror(error)}")
    if result < 0:  # of getaddrinfo(3), as rdma_getaddrinfo returns
        sys.exit(f"hello.py: {name}: {libc.gai_strerror(result).decode()}")
    return result


# Numbers are passed as int, pointers as they are, unless this says otherwise.
lib.rdma_reg_msgs.restype = c_void_p
lib.rdma_reg_msgs.argtypes = c_void_p, c_void_p, c_size_t
lib.rdma_dereg_mr.argtypes = (c_void_p,)
lib.rdma_post_recv.argtypes = c_void_p, c_void_p, c_void_p, c_size_t, c_void_p
lib.rdma_post_send.argtypes = c_void_p, c_void_p, c_void_p, c_size_t, c_void_p, c_int
lib.rdma_freeaddrinfo.restype = lib.rdma_destroy_ep.restype = None


def say(id, text):
    data = text.encode() + b"\0"
    call("rdma_post_send", id, None, data, len(data), None, IBV_SEND_INLINE)


def hear(id, buf):
    """Waits for a line, which arrives in the posted buffer."""
    wc = Wc()
    call("rdma_get_recv_comp", id, byref(wc))
    if wc.status:
        sys.exit(f"not received: status {wc.status}")
    print(buf.raw[:wc.byte_len].split(b"\0")[0].decode())


def endpoint(server):
    hints = AddrInfo(port_space=RDMA_PS_TCP, flags=0 if server else RAI_PASSIVE)
    info, id = POINTER(AddrInfo)(), POINTER(Id)()
    attr = QpInitAttr(max_send_wr=1, max_recv_wr=1, max_send_sge=1, max_recv_sge=1,
                      max_inline_data=32, qp_type=IBV_QPT_RC)
    call("rdma_getaddrinfo", server and server.encode(), PORT, byref(hints), byref(info))
    call("rdma_create_ep", byref(id), info, None, byref(attr))
    lib.rdma_freeaddrinfo(info)
    return id


def main(server=None):
    listener, param = None, ConnParam(retry_count=7, rnr_retry_count=7)
    id = endpoint(server)
    if not server:
        listener, id = id, POINTER(Id)()
        call("rdma_listen", listener, 1)
        call("rdma_get_request", listener, byref(id))

    # Python must keep the buffer as long as it is registered: it has a name here.
    buf = ctypes.create_string_buffer(32)
    mr = call("rdma_reg_msgs", id, buf, len(buf))
    call("rdma_post_recv", id, None, buf, len(buf), mr)
    if server:
        call("rdma_connect", id, byref(param))
        say(id, "hello, server")
        hear(id, buf)
    else:
        call("rdma_accept", id, byref(param))
        hear(id, buf)
        say(id, "hello, client")
        # Not before the client: that could stop the message (see hello.c).
        select.select([id.contents.channel.contents.fd], [], [])

    call("rdma_disconnect", id)
    call("rdma_dereg_mr", mr)
    lib.rdma_destroy_ep(id)
    if listener:
        lib.rdma_destroy_ep(listener)


if __name__ == "__main__":
    if len(sys.argv) > 2:
        sys.exit("usage: hello.py [SERVER]")
    main(*sys.argv[1:])
