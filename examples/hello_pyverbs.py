# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""hello.c in Python, through pyverbs, the binding of rdma-core (package python3-pyverbs).

Usage: rdma-post-run python3 hello_pyverbs.py          waits for one client
       rdma-post-run python3 hello_pyverbs.py SERVER   is the client

Without rdma-post-run it runs over the system's librdmacm and libibverbs. Either side may
be the program in C.
"""
import sys

from pyverbs.cmid import CMID, AddrInfo, ConnParam
from pyverbs.qp import QPCap, QPInitAttr

try:
    from pyverbs import libibverbs_enums as ibv, librdmacm_enums as cm
except ImportError:  # of rdma-core 44
    from pyverbs import enums as ibv, cm_enums as cm

PORT = "7472"
TCP = cm.rdma_port_space.RDMA_PS_TCP


def finished(wc):
    if wc.status != ibv.ibv_wc_status.IBV_WC_SUCCESS:
        sys.exit(f"status {wc.status}")
    return wc


def say(id, text):
    data = text + "\0"
    with id.reg_msgs(len(data)) as mr:
        mr.write(data, len(data))
        id.post_send(mr, ibv.ibv_send_flags.IBV_SEND_SIGNALED)
        # The message has arrived when it is complete: this side may disconnect.
        finished(id.get_send_comp())


def hear(id, mr):
    wc = finished(id.get_recv_comp())
    print(mr.read(wc.byte_len, 0).split(b"\0")[0].decode())


def main(server=None):
    attr = QPInitAttr(qp_type=ibv.ibv_qp_type.IBV_QPT_RC,
                      cap=QPCap(max_send_wr=1, max_recv_wr=1))
    param = ConnParam(retry=7, rnr_retry=7)
    if server:
        info = AddrInfo(dst=server, dst_service=PORT, port_space=TCP)
    else:
        info = AddrInfo(src_service=PORT, port_space=TCP, flags=cm.RAI_PASSIVE)
    id = CMID(creator=info, qp_init_attr=attr)
    if not server:
        listener = id
        listener.listen(1)
        id = listener.get_request()

    # Posted before the other side can send.
    mr = id.reg_msgs(32)
    id.post_recv(mr)
    if server:
        id.connect(param)
        say(id, "hello, server")
        hear(id, mr)
    else:
        id.accept(param)
        hear(id, mr)
        say(id, "hello, client")
    id.disconnect()


if __name__ == "__main__":
    if len(sys.argv) > 2:
        sys.exit("usage: hello_pyverbs.py [SERVER]")
    main(*sys.argv[1:])
