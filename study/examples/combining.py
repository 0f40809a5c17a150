"""The same combinations and metrics with NumPy, SciPy, pyemd and POT, on the tables that the example `combining` wrote:

    python3 -m venv venv && venv/bin/pip install numpy scipy pyarrow POT pyemd
    cargo run --release -p ompfuse-study --example combining -- 1000000 15 FOLDER
    venv/bin/python study/examples/combining.py FOLDER

Straightforward, vectorised, one thread but for what NumPy does itself. Reading files is not in the times.
"""

import sys
import time
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq

FIXED = {"label", "label_hash", "type", "module", "kind", "region_construct", "construct", "function", "source", "process", "process_number",
         "thread", "cpu", "first_iteration", "ordinal", "mpi_rank", "iterations", "start_ns", "end_ns", "own_ns", "parts", "confidence"}


def read(path):
    table = pq.read_table(path)
    events = {n: table[n].to_numpy().astype(np.int64) for n in table.column_names
              if n not in FIXED and not n.startswith(("run:", "xu:"))}
    hashes = np.frombuffer(b"".join(table["label_hash"].to_pylist()), dtype=">u8").reshape(-1, 2)
    key = hashes[:, 0].astype(np.uint64)
    types = table["type"].dictionary_encode().combine_chunks().indices.to_numpy()
    # Rows are in depth-first order of the labels: the rank of a label is its row.
    return {"key": key, "type": types, "events": events, "rank": np.arange(len(key))}


def lgl(runs):
    """Inner join on the label."""
    first = runs[0]
    order = np.argsort(first["key"], kind="stable")
    keys = first["key"][order]
    columns = dict(first["events"])
    kept = np.ones(len(keys), bool)
    for run in runs[1:]:
        theirs = np.argsort(run["key"], kind="stable")
        at = np.searchsorted(run["key"][theirs], keys)
        at[at == len(theirs)] = 0
        found = run["key"][theirs][at] == keys
        kept &= found
        rows = np.empty(len(keys), np.int64)
        rows[order] = theirs[at]
        for name, values in run["events"].items():
            columns.setdefault(name, values[rows])
    mask = np.empty(len(keys), bool)
    mask[order] = kept
    return {name: values[mask] for name, values in columns.items()}


def bc_step(prev, cur, common):
    """Pairs of rows of prev and cur: grids of all common events, from fine to coarse, half as many divisions each time."""
    pairs = []
    for kind in np.unique(prev["type"]):
        p, c = np.flatnonzero(prev["type"] == kind), np.flatnonzero(cur["type"] == kind)
        if not len(p) or not len(c):
            continue
        p = p[np.argsort(prev["rank"][p], kind="stable")]
        c = c[np.argsort(cur["rank"][c], kind="stable")]
        axes, d = [], None
        for e in common:
            a, b = prev["events"][e], cur["events"][e]
            low = min(a[p].min(), b[c].min())
            width = max(a[p].max(), b[c].max()) - low
            if width == 0:
                continue
            s = np.sort(b[c])
            at = np.clip(np.searchsorted(s, a[p]), 1, len(s) - 1) if len(s) > 1 else np.zeros(len(p), int)
            delta = max(1, int(min(np.abs(a[p] - s[at]).min(), np.abs(a[p] - s[at - 1]).min())))
            d = width // delta if d is None else min(d, width // delta)
            axes.append((a, b, low, width))
        d = max(1, d or 1)
        while True:
            cells = lambda rows, side: np.stack([np.minimum(d - 1, (x[side][rows] - x[2]) * d // x[3]) for x in axes], 1)
            if axes and d > 1:
                both = np.concatenate([cells(p, 0), cells(c, 1)])
                _, cell = np.unique(both, axis=0, return_inverse=True)
                cell = cell.ravel()
                cp, cc = cell[: len(p)], cell[len(p):]
            else:
                cp, cc = np.zeros(len(p), int), np.zeros(len(c), int)
            op, oc = np.argsort(cp, kind="stable"), np.argsort(cc, kind="stable")
            place = lambda sorted_cells: np.arange(len(sorted_cells)) - np.searchsorted(sorted_cells, sorted_cells)
            n = max(len(p), len(c)) + 1
            kp, kc = cp[op] * n + place(cp[op]), cc[oc] * n + place(cc[oc])
            _, ip, ic = np.intersect1d(kp, kc, assume_unique=True, return_indices=True)
            pairs.append(np.stack([p[op[ip]], c[oc[ic]]], 1))
            p, c = np.delete(p, op[ip]), np.delete(c, oc[ic])
            if not len(p) or not len(c) or d == 1:
                break
            d //= 2
    return np.concatenate(pairs)


def bc(runs):
    prev = {"type": runs[0]["type"], "rank": runs[0]["rank"], "events": dict(runs[0]["events"])}
    for cur in runs[1:]:
        common = [e for e in cur["events"] if e in prev["events"]]
        pairs = bc_step(prev, cur, common)
        pairs = pairs[np.argsort(pairs[:, 0], kind="stable")]
        events = {e: v[pairs[:, 0]] for e, v in prev["events"].items()}
        for e, v in cur["events"].items():
            events.setdefault(e, v[pairs[:, 1]])
        # The common prefix of labels is left out here: it would only add to the time.
        prev = {"type": prev["type"][pairs[:, 0]], "rank": prev["rank"][pairs[:, 0]], "events": events}
    return prev["events"]


def histogram(x, y, bounds_x, bounds_y, bins=10):
    def scaled(v, bounds):
        low, high = bounds
        position = (v - low) / ((high - low) / bins if high > low else 1.0)
        cell = np.clip(np.floor(position), -1, bins).astype(int)
        cell[(v <= high) & (cell == bins)] = bins - 1
        return position, cell + 1
    (px, bx), (py, by) = scaled(x, bounds_x), scaled(y, bounds_y)
    cell = bx * (bins + 2) + by
    count = np.bincount(cell, minlength=(bins + 2) ** 2)
    used = np.flatnonzero(count)
    n = count[used]
    where = np.stack([np.bincount(cell, px, (bins + 2) ** 2)[used] / n, np.bincount(cell, py, (bins + 2) ** 2)[used] / n], 1)
    return n / len(x), where


def epd(target, references, emd):
    names = list(references[0]["events"])
    bounds = {e: (min(r["events"][e].min() for r in references), max(r["events"][e].max() for r in references)) for e in names}
    logs = []
    for i, x in enumerate(names):
        for y in names[i + 1:]:
            of = lambda t: histogram(t["events"][x], t["events"][y], bounds[x], bounds[y])
            grids, own = [of(r) for r in references], of(target)
            value = np.median([emd(own, g) for g in grids])
            between = np.median([emd(grids[a], grids[b]) for a in range(len(grids)) for b in range(a + 1, len(grids))])
            logs.append(np.log(max(value, 1e-3) / max(between, 1e-3)))
    return np.exp(np.mean(logs))


def timed(what, job):
    begin, busy = time.perf_counter(), time.process_time()
    result = job()
    print(f"{what:28} {time.perf_counter() - begin:8.2f} s  {time.process_time() - busy:8.2f} s of processors", flush=True)
    return result


def full_histograms():
    state = 7
    def draw():
        nonlocal state
        state = (state * 6364136223846793005 + 1442695040888963407) % 2**64
        return (state >> 33) % 1000 + 1
    a, b = np.array([draw() for _ in range(100)], float), np.array([draw() for _ in range(100)], float)
    corners = np.array([(i // 10, i % 10) for i in range(100)], float)
    places = lambda: corners + np.array([(draw(), draw()) for _ in range(100)], float) / 1001.0
    return a / a.sum(), b / b.sum(), corners, places(), places()


def main(folder):
    files = lambda prefix: [read(p) for p in sorted(Path(folder).glob(f"{prefix}-*.parquet"))]
    import ot
    a, b, corners, inside_a, inside_b = full_histograms()
    cost = np.sqrt(((corners[:, None] - corners[None]) ** 2).sum(2))
    inside = np.sqrt(((inside_a[:, None] - inside_b[None]) ** 2).sum(2))
    def rounds(call, n=50):
        times = []
        for _ in range(n):
            begin = time.perf_counter()
            result = call()
            times.append(time.perf_counter() - begin)
        return f"{np.median(times) * 1e6:.1f} us (median of {n}), {result:.12f}"
    print("emd of two full 10 x 10 histograms, at the bins' corners: POT", rounds(lambda: ot.emd2(a, b, cost)))
    print("emd of two full 10 x 10 histograms, anywhere in their bins: POT", rounds(lambda: ot.emd2(a, b, inside)))
    try:
        import pyemd
        print("emd of two full 10 x 10 histograms, at the bins' corners: pyemd", rounds(lambda: pyemd.emd(a, b, cost), 5))
    except ImportError:
        print("pyemd is not installed")
    runs = files("lgl")
    if runs:
        timed("lgl", lambda: lgl(runs))
        del runs
    references, targets = files("reference"), read(Path(folder) / "target.parquet")
    def pot(p, q):
        return ot.emd2(p[0], q[0], np.sqrt(((p[1][:, None] - q[1][None]) ** 2).sum(2)))
    print(f"epd {timed('epd (POT)', lambda: epd(targets, references, pot)):.12f}")
    del references, targets
    runs = files("bc")
    if runs:
        timed("bc (halve)", lambda: bc(runs))


main(sys.argv[1])
