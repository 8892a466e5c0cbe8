# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Usage, in the directory of rdma-core's "tests": pyverbs_tests.py RESULTS [OPTIONS] [TEST...]

Runs rdma-core's tests as their run_tests.py does. Writes "TEST RESULT" to the file
RESULTS after each test and "end" after the last one: in the output, results are mixed
with warnings, and Python may crash when it ends.
"""

import inspect
import json
import subprocess
import sys
import unittest

sys.path[:0] = ["tests", "."]
results = open(sys.argv.pop(1), "w", buffering=1)

import tests  # noqa: E402
from args_parser import parser  # noqa: E402
from tests.base import RDMATestCase  # noqa: E402

RANK = ["ok", "skipped", "FAIL", "ERROR"]


class Result(unittest.TextTestResult):
    found = None

    def startTest(self, test):
        self.found = []
        super().startTest(test)

    def stopTest(self, test):
        super().stopTest(test)
        worst = max(self.found, key=RANK.index, default="ERROR")
        print(test.id(), worst, file=results)
        self.found = None

    def note(self, test, result):
        if self.found is None:  # a class or module could not be set up
            print(test.id().replace(" ", "_"), result, file=results)
        else:
            self.found.append(result)

    def addSuccess(self, test):
        super().addSuccess(test)
        self.note(test, "ok")

    def addSkip(self, test, reason):
        super().addSkip(test, reason)
        self.note(test, "skipped")

    def addFailure(self, test, err):
        super().addFailure(test, err)
        self.note(test, "FAIL")

    def addError(self, test, err):
        super().addError(test, err)
        self.note(test, "ERROR")

    def addSubTest(self, test, subtest, err):
        super().addSubTest(test, subtest, err)
        if err is not None:
            self.note(test, "FAIL")


class Runner(unittest.TextTestRunner):
    resultclass = Result


def add_interface(self, dev, port, index):
    """Replaces RDMATestCase._get_ip_mac() of rdma-core 44, which finds the interface in
    the directory device/net of sysfs, by what later versions do: rxe has no such
    directory."""
    links = json.loads(subprocess.check_output(["rdma", "link", "show", "-j"]))
    for link in links:
        if (link["ifname"], link["port"]) == (dev, port):
            addresses = self.get_ip_mac_address(link["netdev"])
            self.args.append([dev, port, index, *addresses])


if "port" not in inspect.signature(RDMATestCase.get_net_name).parameters:
    RDMATestCase._get_ip_mac = add_interface
parser.parse_args()
passed = unittest.main(tests, testRunner=Runner, exit=False).result.wasSuccessful()
print("end", file=results)
sys.exit(not passed)
