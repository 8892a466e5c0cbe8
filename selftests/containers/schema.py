# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Usage: schema.py SCHEMA FILE: fails if the schema, or what it says, does not suit FILE."""
import json
import os
import sys

import jsonschema


def load(path):
    with open(path, encoding="utf-8") as file:
        return json.load(file)


def main():
    path = os.path.abspath(sys.argv[1])
    schema = load(path)
    resolver = jsonschema.RefResolver(f"file://{path}", schema)
    validator = jsonschema.Draft7Validator(schema, resolver=resolver)
    spec = load(sys.argv[2])
    validator.validate(spec)
    # The schema must refuse what is wrong, or it has not been found.
    spec["devices"][0]["containerEdits"]["deviceNodes"][0].pop("path")
    if validator.is_valid(spec):
        sys.exit("the schema takes a node without a path")
    print("valid")


main()
