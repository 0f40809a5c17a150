"""A benchmark of a wheel, for `ompfuse try -- python3 tried.py WHEEL`: lightgbm, few (lightgbm with few rows), xgboost or sklearn.

Prints what the model says, and no times. Data are made by a fixed seed.
"""

import sys

import numpy

RANDOM = numpy.random.default_rng(1)


def data(rows, columns):
    x = RANDOM.random((rows, columns), dtype=numpy.float32)
    return x, (x[:, 0] * x[:, 1] + x[:, 2] > 0.7).astype(numpy.int32)


def of_lightgbm(rows=8_000, rounds=20):
    import lightgbm

    x, y = data(rows, 20)
    options = {"objective": "binary", "verbose": -1, "num_threads": 2, "deterministic": True, "force_row_wise": True}
    model = lightgbm.train(options, lightgbm.Dataset(x, y), num_boost_round=rounds)
    return model.predict(x)


def of_few():
    return of_lightgbm(300, 60)


def of_xgboost():
    import xgboost

    x, y = data(8_000, 20)
    options = {"objective": "binary:logistic", "nthread": 2, "max_depth": 8}
    model = xgboost.train(options, xgboost.DMatrix(x, y), num_boost_round=20)
    return model.predict(xgboost.DMatrix(x))


def of_sklearn():
    from sklearn.ensemble import HistGradientBoostingClassifier

    x, y = data(8_000, 20)
    return HistGradientBoostingClassifier(max_iter=20, random_state=1).fit(x, y).predict_proba(x)[:, 1]


found = {"lightgbm": of_lightgbm, "few": of_few, "xgboost": of_xgboost, "sklearn": of_sklearn}[sys.argv[1]]()
print(f"{float(numpy.mean(found)):.4f} {float(numpy.std(found)):.4f}")
