"""What runs the tests (tools/gates/run_tests.py): processes, a schedule of them, builds, stages, and what is counted. SPDX-License-Identifier: MIT"""
