"""Being told to stop: nothing unfinished may stay behind, and the program ends by the signal, as shells expect. And standard output
that is closed or full. SPDX-License-Identifier: MIT
"""
import os
import shutil
import signal
import subprocess
import time

from helpers import DEMO, SPM, TINY, alive, at_most, check_message, children_of, contains, ending, wait_until

# Long enough to be interrupted: 350 MB of attention are written.
LONG_ENCODE = ["encode", "synthetic:v3-xsmall,vocab=50,hidden=64,heads=8,intermediate=64,layers=6", "--ids", ",".join(["7"] * 600),
               "--attention-layers", "all", "--component-layers", "all", "-o", "x.safetensors"]
LONG_BENCH = ["bench", "synthetic:v3-xsmall,vocab=50,layers=6", "-n", "512", "--reps", "500", "--no-peak", "--json", "-o", "x.json"]
LONG_PEAK = ["bench", "synthetic:v3-xsmall,vocab=50,layers=1", "-n", "16", "--reps", "7", "--json", "-o", "x.json"]
# It puts its page together in a folder.
LONG_REPORT = ["report", DEMO, "--with", "latency,verify", "-q", "-o", "page.html"]


def stopped(arguments, number, old=None):
    """Waits for the unfinished file, sends the signal, looks at what is left."""
    def test(bench):
        target = bench.path(arguments[-1])
        if old:
            bench.write(target, old)
        names = bench.files()
        # whoever runs the tests may ignore the signal (nohup), and the program would inherit that
        process = bench.start(*arguments, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
                              preexec_fn=lambda: signal.signal(number, signal.SIG_DFL))
        with ending(process):
            assert wait_until(lambda: bench.files() != names or process.poll() is not None), "no unfinished file was seen"
            descendants = []
            if arguments is LONG_PEAK:
                assert wait_until(lambda: descendants.extend(children_of(process.pid)) or descendants or process.poll() is not None)
                assert descendants, "no child process was seen"
            assert process.poll() is None, f"ended before it could be stopped: {process.stderr.read()}"
            time.sleep(0.005)
            descendants += children_of(process.pid)
            process.send_signal(number)
            _, err = process.communicate(timeout=60)
            assert process.returncode == -number, f"ended with {process.returncode}, expected the signal {number}: {err}"
            assert bench.files() == names, f"left behind: {set(bench.files()) - set(names)}"
            if old:
                assert bench.read(target) == old
            assert wait_until(lambda: not any(alive(pid) for pid in descendants), 0.5), "a child process goes on"
    return test


def test_hangup_ignored(bench):
    """Under nohup a hang-up means nothing."""
    process = bench.start(*LONG_PEAK, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
                          preexec_fn=lambda: signal.signal(signal.SIGHUP, signal.SIG_IGN))
    with ending(process):
        assert wait_until(lambda: bench.files() or process.poll() is not None)
        process.send_signal(signal.SIGHUP)
        time.sleep(0.2)
        going_on = process.poll() is None or process.returncode == 0
        process.terminate()
        process.communicate(timeout=60)
    assert going_on, f"ended with {process.returncode}"


def test_closed_pipe(bench):
    """`deberta verify | head -1` ends by SIGPIPE without a word."""
    for arguments in (["verify", TINY], ["tokenize", os.path.join(bench.golden, SPM), *["--text", "a b c"] * 3000], ["info", "--json"]):
        read, write = os.pipe()
        os.close(read)
        process = bench.start(*arguments, stdout=write, stderr=subprocess.PIPE)
        os.close(write)
        _, err = process.communicate(timeout=60)
        assert process.returncode == -signal.SIGPIPE and err == b"", (arguments[0], process.returncode, err)


def test_closed_pipe_ignored(bench):
    """Where SIGPIPE is ignored, the error is reported instead."""
    read, write = os.pipe()
    os.close(read)
    process = bench.start("info", stdout=write, stderr=subprocess.PIPE, restore_signals=False)
    os.close(write)
    _, err = process.communicate(timeout=60)
    assert process.returncode == 4 and b"standard output cannot be written" in err, (process.returncode, err)


def test_full_disk(bench):
    """A full disk must not look like success, however little is printed, and is told of beside what else is wrong."""
    model = os.path.join(bench.golden, SPM)
    for arguments in (["--version"], ["--help"], ["info"], ["info", "--help"], ["info", "--json"],
                      ["tokenize", model, "--text", "a"], ["verify", "--mutate", "list"], ["completion", "bash"], ["verify", TINY],
                      ["bench", TINY, "-n", "4", "--reps", "1", "--min-time", "0", "--no-peak"]):
        with open("/dev/full", "w", encoding="ascii") as full:
            result = bench.run(*arguments, stdout=full)
        assert result.code == 4 and "standard output cannot be written: No space left on device" in result.err, (arguments, result.describe())
    with open("/dev/full", "w", encoding="ascii") as full:
        result = bench.run("verify", "--mutate", "p2c_ji", stdout=full)
    assert result.code == 1 and "standard output cannot be written: No space left on device" in result.err, result.describe()
    for arguments in ([], ["--json"]):
        result = bench.run("bench", TINY, "-n", "4", "--reps", "1", "--min-time", "0", "--no-peak", *arguments, "-o", "/dev/full")
        check_message(result, 4, ["/dev/full: cannot be written: No space left on device"])


def test_small_disk(bench):
    """A limit on the size of files stands for a disk that fills up while results are written: no file, old or new, is damaged."""
    bench.write("x.safetensors", "old")
    said = bench.expect(4, "encode", TINY, "--ids", ",".join(["1"] * 100), "-o", "x.safetensors", preexec_fn=at_most("FSIZE", 4096)).err
    contains(said, "x.safetensors", "File too large")
    assert bench.files() == ["x.safetensors"] and os.path.getsize(bench.path("x.safetensors")) == 3


def test_weights_that_shrink(bench):
    """The model is cut while a corpus is encoded: a sentence and exit 3, not SIGBUS; and nothing unfinished stays."""
    for name in ("model.safetensors", "deberta.packed"):
        folder = bench.path(f"model-{name}")
        shutil.copytree(DEMO, folder)
        if name == "deberta.packed":
            bench.fine("pack", folder, "-q")
        bench.write("texts.txt", "".join(f"text {k} of a corpus that goes on and on and on\n" for k in range(40000)))
        names = bench.files()
        process = bench.start("encode", folder, "--file", "texts.txt", "--batch-tokens", "64", "-t", "1", "-q", "-o", "x.npy", stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        with ending(process):
            assert wait_until(lambda: bench.files() != names or process.poll() is not None)
            assert process.poll() is None, "ended before the model could be cut"
            os.truncate(os.path.join(folder, name), 4096)
            _, err = process.communicate(timeout=60)
        assert process.returncode == 3 and b"became shorter, or could not be read, while it was in use" in err, (process.returncode, err)
        assert bench.files() == names, bench.files()


def test_devices_stay(bench):
    """--out to a device or a pipe writes there and leaves it what it is."""
    os.mkfifo(bench.path("pipe"))
    process = bench.start("info", "--json", "-o", "pipe", stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    text = bench.read("pipe")
    out, err = process.communicate(timeout=60)
    assert process.returncode == 0 and out == b"" and text.startswith("{"), (process.returncode, err)
    assert bench.files() == ["pipe"]
    os.symlink("/dev/null", bench.path("null"))
    bench.fine("info", "--json", "-o", "null")
    assert os.path.islink(bench.path("null")) and not os.path.isfile("/dev/null")
    assert bench.fine("info", "-o", "-").out == bench.fine("info").out


def tests(settings):
    yield "stop/encode-term", stopped(LONG_ENCODE, signal.SIGTERM)
    yield "stop/encode-int", stopped(LONG_ENCODE, signal.SIGINT, "old")
    yield "stop/bench-term", stopped(LONG_BENCH, signal.SIGTERM, "old")
    yield "stop/bench-int", stopped(LONG_BENCH, signal.SIGINT)
    yield "stop/bench-hup", stopped(LONG_BENCH, signal.SIGHUP)
    yield "stop/bench-peak", stopped(LONG_PEAK, signal.SIGTERM)
    yield "stop/report", stopped(LONG_REPORT, signal.SIGTERM)
