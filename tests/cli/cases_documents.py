"""Documents against the program. SPDX-License-Identifier: MIT"""

def tests(settings): return []
