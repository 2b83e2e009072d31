"""Where the system does not say which processors a process may use, the program goes on with those that are online, and says so.

SPDX-License-Identifier: MIT
"""
import errno
import os
import json
from unittest import SkipTest

from helpers import TINY, check, contains, equal, is_sanitized

LIBRARY = "tests/failing_calls/failing_affinity.so"


def test_affinity_is_not_told(bench):
    library = os.path.join(os.path.dirname(os.path.abspath(bench.program)), LIBRARY)
    if is_sanitized(bench.program) or not os.path.exists(library):
        raise SkipTest("the call cannot be made to fail here")
    words = ["encode", TINY, "--ids", "1,2,3,4,5", "-o"]
    bench.fine(*words, "told.safetensors")
    for number in (errno.EPERM, errno.EINVAL, errno.ENOSYS):
        environment = {"LD_PRELOAD": library, "FAIL_WITH": str(number)}
        contains(bench.run("info", env=environment, timeout=20).out, "the system does not say which this process may use", os.strerror(number))
        topology = json.loads(bench.run("info", "--json", env=environment, timeout=20).out)["topology"]
        check(topology["cores"] == topology["logical_processors"] >= topology["usable_cores"] >= 1, topology)
        for more in ([], ["--threads", "2"]):
            result = bench.run(*words, "untold.safetensors", *more, env=environment, timeout=20)
            equal(result.code, 0, result.describe())
            contains(result.err, "the system does not say which processors this process may use", os.strerror(number))
            with open(bench.path("told.safetensors"), "rb") as one, open(bench.path("untold.safetensors"), "rb") as other:
                equal(one.read(), other.read())
