"""`tools/peers.py cores`: the slowest thread's share is that of an exhaustive search, and times come near to what was measured.
SPDX-License-Identifier: MIT"""
import csv
import sys

import pytest

from conftest import ROOT

sys.path.insert(0, str(ROOT / "tools"))
from rivals import cores  # noqa: E402


@pytest.mark.parametrize("rows,panels,threads", [(16, 48, 8), (16, 192, 96), (128, 48, 32), (512, 144, 96), (1, 48, 2)])
def test_slowest_share_is_possible(rows, panels, threads):
    share = cores.slowest_share(rows, panels, threads)
    assert 1 / threads <= share + 1e-12 and share <= 1.12  # a cut of rows costs up to 3 of 32 more


def test_one_thread_does_all():
    assert cores.slowest_share(128, 48, 1) == 1 and cores.attention_share(128, 1) == 1


def test_more_cores_meet_longer_and_never_read_faster_than_the_socket():
    one, two = cores.Machine(1, 96, 400), cores.Machine(2, 96, 400)
    assert two.meeting() > one.meeting()
    assert cores.seconds(16, two, 110)[1]["memory"] == cores.seconds(16, one, 110)[1]["memory"]


def test_near_the_measured_machine():
    with open(ROOT / "docs/benchmarks/intel-xeon-167.csv", encoding="utf-8") as file:
        rows = [row for row in csv.DictReader(file) if row["engine"] == "deberta" and row["threads"] == "2" and row["model"] == "v3-base"]
    assert rows
    for row in rows:
        paper = 1e3 * cores.seconds(int(row["tokens"]), cores.machine_of("1x2@34"), 230)[0]
        assert paper == pytest.approx(float(row["median_ms"]), rel=0.08), row["tokens"]
