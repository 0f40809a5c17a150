#!/usr/bin/env python3
"""What a user of others' programs sees first: the first lines of `ompfuse profile` at 80 columns, for programs of PyPI, Fortran and Debian.

    tests/screens.py [--install] OUT.md [NAME...]

`--install` gets what they need: packages of Debian by apt-get, and wheels into target/screens. Each program runs with two threads. Times
differ from run to run; what is said about them should not. OMPFUSE_BIN names the command.
"""

import os
import pathlib
import shutil
import subprocess
import sys

import programs

ROOT = pathlib.Path(__file__).resolve().parent.parent
FOLDER = ROOT / "target/screens"
PYTHON = FOLDER / "venv/bin/python3"
LINES = 24

NUMPY = """
import numpy as np
x = np.random.default_rng(1).random((1500, 1500))
for _ in range(4):
    x = x @ x / np.linalg.norm(x)
print(x.shape)
"""
BOOSTING = """
import numpy as np
from sklearn.ensemble import HistGradientBoostingRegressor as Model
x = np.arange(400000).reshape(100000, 4) % 37 / 37
print(Model(max_iter=40, early_stopping=False).fit(x, x.sum(1) ** 2).predict(x[:2]))
"""
CLUSTERS = """
import numpy as np
from sklearn.cluster import KMeans
x = np.random.default_rng(1).random((60000, 16))
print(KMeans(20, n_init=1, max_iter=60, random_state=1).fit(x).n_iter_ > 0)
"""
LIGHTGBM = """
import numpy as np, lightgbm
x = np.random.default_rng(1).random((50000, 20))
data = lightgbm.Dataset(x, x[:, 0] * x[:, 1])
print(lightgbm.train({"verbose": -1, "num_leaves": 63}, data, 60).num_trees())
"""
XGBOOST = """
import numpy as np, xgboost
x = np.random.default_rng(1).random((50000, 20))
print(xgboost.train({"max_depth": 6}, xgboost.DMatrix(x, x[:, 0] * x[:, 1]), 40).num_boosted_rounds())
"""
FAISS = """
import numpy as np, faiss
x = np.random.default_rng(1).random((40000, 32)).astype("float32")
index = faiss.IndexFlatL2(32)
index.add(x)
print(index.search(x[:2000], 5)[1].shape)
"""
NUMBA = """
import numba, numpy as np
@numba.njit(parallel=True)
def total(x):
    s = 0.0
    for i in numba.prange(len(x)):
        s += np.sqrt(x[i]) * np.sin(x[i])
    return s
numba.config.THREADING_LAYER = "omp"
x = np.random.default_rng(1).random(20_000_000)
print(sum(total(x) for _ in range(5)) > 0)
"""
IMPLICIT = """
import numpy as np, scipy.sparse as sparse
from implicit.als import AlternatingLeastSquares as Model
x = sparse.random(6000, 3000, 0.01, "csr", "float32", 1)
Model(32, iterations=6, random_state=1, num_threads=2).fit(x, show_progress=False)
"""
TREES = """
import numpy as np
from pykdtree.kdtree import KDTree
x = np.random.default_rng(1).random((200000, 3))
print(KDTree(x).query(x, k=8)[0].shape)
"""
TSNE = """
import numpy as np
from openTSNE import TSNE
x = np.random.default_rng(1).random((1500, 10))
print(TSNE(n_jobs=2, n_iter=150, random_state=1, neighbors="exact").fit(x).shape)
"""
# A wheel, and a script.
WHEELS = {
    "numpy": ("numpy", NUMPY),
    "scikit-learn, boosting": ("scikit-learn", BOOSTING),
    "scikit-learn, clusters": ("scikit-learn", CLUSTERS),
    "lightgbm": ("lightgbm", LIGHTGBM),
    "xgboost": ("xgboost-cpu", XGBOOST),
    "faiss": ("faiss-cpu", FAISS),
    "numba": ("numba", NUMBA),
    "implicit": ("implicit", IMPLICIT),
    "pykdtree": ("pykdtree", TREES),
    "openTSNE": ("openTSNE", TSNE),
}
# A source below tests/sources/screens, and a compiler.
FORTRAN = {
    "heat, gfortran": ("heat.f90", "gfortran -O2 -g -fopenmp"),
    "heat, flang": ("heat.f90", "flang-new-19 -O2 -g -fopenmp"),
    "mesh, gfortran": ("mesh.f90", "gfortran -O2 -g -fopenmp"),
    "mesh, flang": ("mesh.f90", "flang-new-19 -O2 -g -fopenmp"),
}
# A package, and a command of the shell.
DEBIAN = {
    "mopac (Fortran)": ("mopac", "mopac water.mop"),
    "par2": ("par2", "head -c 20000000 /dev/urandom > large.bin; exec par2 create -q -q -r30 -s200000 large.par2 large.bin"),
    "graphicsmagick": ("graphicsmagick", "exec gm convert image.png -resize 2000x1500 -blur 0x6 -rotate 10 out.ppm"),
    "pngquant": ("pngquant", "gm convert image.png -resize 3000x2000 large.png; exec pngquant 64 -o out.png large.png"),
    "fasttree": ("fasttree", "exec fasttreeMP -nopr -quiet -nt bases.fa"),
    "primecount": ("primecount-bin", "exec primecount 1e12"),
}


def install():
    packages = [package for package, _ in DEBIAN.values()]
    subprocess.run(["apt-get", "install", "--yes", "-qq", "--no-install-recommends", *packages, "python3-venv"], check=True)
    subprocess.run([sys.executable, "-m", "venv", FOLDER / "venv"], check=True)
    wheels = sorted({wheel for wheel, _ in WHEELS.values()})
    subprocess.run([PYTHON, "-m", "pip", "install", "--quiet", *wheels], check=True)


def started(name, folder):
    """The words that start a program, in its folder."""
    if name in WHEELS:
        script = folder / "script.py"
        script.write_text(WHEELS[name][1].lstrip())
        return [PYTHON, script.name]
    if name in FORTRAN:
        source, compiler = FORTRAN[name]
        out = folder / source.removesuffix(".f90")
        subprocess.run([*compiler.split(), ROOT / "tests/sources/screens" / source, "-o", out], check=True, cwd=folder)
        return [f"./{out.name}"]
    programs.inputs(folder)
    return ["sh", "-c", DEBIAN[name][1]]


def screen(command, name):
    """The first lines that `profile` shows."""
    folder = FOLDER / "work"
    env = os.environ | {"OMP_NUM_THREADS": "2", "COLUMNS": "80", "NO_COLOR": "1", "PYTHONHASHSEED": "0"}
    # Copies of libraries are made in the first run.
    for _ in range(2):
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        words = [str(word) for word in started(name, folder)]
        done = subprocess.run([command, "profile", "-o", "out", "--", *words], cwd=folder, env=env, capture_output=True, text=True, timeout=300)
    lines = [line.replace(str(FOLDER), "…") for line in done.stderr.splitlines()]
    return lines[:LINES]


def main(arguments):
    if "--install" in arguments:
        install()
        arguments.remove("--install")
    if not arguments:
        print(__doc__, file=sys.stderr)
        return 2
    command = os.path.abspath(os.environ.get("OMPFUSE_BIN", ROOT / "target/tests/ompfuse"))
    out, names = pathlib.Path(arguments[0]), arguments[1:] or [*WHEELS, *FORTRAN, *DEBIAN]
    text = "# First screens\n\nThe first lines of `ompfuse profile` at 80 columns, with two threads, for programs that nobody has changed. Made by:\n\n"
    text += "```sh\ntests/screens.py --install docs/measurements/first-screens.md\n```\n"
    for name in names:
        print(name, flush=True)
        text += f"\n## {name}\n\n```\n" + "\n".join(screen(command, name)) + "\n```\n"
    out.write_text(text)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
