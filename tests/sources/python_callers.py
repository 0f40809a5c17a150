"""Calls a library's `solve` from many places, and says itself from where: its own frames, as the interpreter tells them.

Arguments: the library, and what to do.
"""

import collections
import ctypes
import gc
import os
import sys
import threading

lib = ctypes.CDLL(sys.argv[1])
solve = lib.solve
solve.restype = ctypes.c_double
calls = collections.Counter()


def told():
    """Counts a call of `solve` on the line of the caller's."""
    frame, chain = sys._getframe(1), []
    while frame:
        code = frame.f_code
        if not code.co_filename.startswith("<frozen "):
            name = os.path.basename(code.co_filename)
            chain.append(f"{name}:{frame.f_lineno} {getattr(code, 'co_qualname', code.co_name)}")
        frame = frame.f_back
    calls[" < ".join(chain)] += 1


def fit(n):
    for _ in range(3):
        told() or solve(n)


class Model:
    def predict(self, n):
        fit(n)
        return sum(told() or solve(k) for k in range(n)) + (
            told() or solve(n)
        )


def numbers(n):
    for k in range(n):
        yield told() or solve(k)


def deep(n):
    return deep(n - 1) if n else told() or solve(1)


def back(n, _):
    told() or solve(5)
    return 0


def many():
    fit(10)
    Model().predict(4)
    Model.predict(None, 2)
    sum(numbers(3))
    next(numbers(1))
    [told() or solve(k) for k in range(2)]
    (lambda: told() or solve(7))()
    deep(9)
    # From C code back into Python: the callers of a sort, and of a C function that Python has called.
    sorted([3, 1, 2], key=lambda k: told() or solve(k))
    kind = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_int, ctypes.c_void_p)
    kind(back)(1, None)


def made():
    """Code objects that have the places of freed ones, with the same names, sizes and lines, but other files."""
    for k in range(40):
        code = compile("told() or solve(3)", f"made{k:02}.py", "exec")
        exec(code, globals())
        del code
        gc.collect(0)


def threads():
    all = [threading.Thread(target=work, args=(5,)) for work in (fit, deep, fit)]
    [t.start() for t in all]
    [t.join() for t in all]


def children():
    # Before the first region: an OpenMP runtime's threads aren't in the child.
    child = os.fork()
    if child == 0:
        deep(2)
        show()
        sys.stdout.flush()
        sys.exit(0)
    os.waitpid(child, 0)
    fit(3)


def beside():
    """While there is another interpreter nothing is read of any: one call isn't counted here."""
    try:
        import _interpreters as others
    except ImportError:
        import _xxsubinterpreters as others
    fit(1)
    other = others.create()
    solve(2)
    others.destroy(other)
    deep(1)


def forever():
    while True:
        solve(1)


def show():
    for chain, times in calls.items():
        print("call", times, chain)


def main(what):
    if what == "leave":
        fit(1)
        print("leaves", flush=True)
        os._exit(3)
    if what == "raise":
        fit(1)
        raise SystemExit(4)
    if what == "daemons":
        for _ in range(3):
            threading.Thread(target=forever, daemon=True).start()
        fit(100)
        print("ends", flush=True)
        return
    {"many": many, "made": made, "threads": threads, "children": children, "beside": beside}[what]()
    show()


main(sys.argv[2])
