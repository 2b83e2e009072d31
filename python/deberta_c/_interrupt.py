"""Ctrl-C while the library computes. SPDX-License-Identifier: MIT"""
from __future__ import annotations

import signal
import threading
from typing import Any


class Interruption:
    """Notes SIGINT instead of raising at once: an exception inside a callback would be lost. The observer then stops the encode, and
    the handler that was there is called behind it. Only the main thread receives signals; elsewhere this does nothing."""

    seen = False
    _before: Any = None

    def __enter__(self) -> "Interruption":
        if threading.current_thread() is threading.main_thread() and callable(signal.getsignal(signal.SIGINT)):
            self._before = signal.signal(signal.SIGINT, self._note)
        return self

    def _note(self, number: int, frame: Any) -> None:
        self.seen = True

    def __exit__(self, *reason: Any) -> None:
        if self._before is not None:
            signal.signal(signal.SIGINT, self._before)
            if self.seen:
                self._before(signal.SIGINT, None)
