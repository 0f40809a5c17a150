"""Compares JSON files with a JSON Schema: validate.py SCHEMA FILE...

The schema lets objects have more fields, since some will be added. Here one that it doesn't describe is an error."""

import json
import sys

import jsonschema_rs


def strict(schema):
    for described in [schema, *schema["$defs"].values()]:
        for one in described.get("oneOf", [described]):
            if "properties" in one:
                one["unevaluatedProperties"] = False
    return schema


with open(sys.argv[1], encoding="utf-8") as file:
    schema = json.load(file)
jsonschema_rs.meta.validate(schema)
validator = jsonschema_rs.Draft202012Validator(strict(schema))
status = 0
for path in sys.argv[2:]:
    with open(path, encoding="utf-8") as file:
        errors = validator.iter_errors(json.load(file))
    for error in errors:
        print(f"{path}: {error.instance_path}: {error.message[:500]}")
        status = 1
sys.exit(status)
