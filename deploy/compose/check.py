"""Holds compose.yaml against the schema of the Compose specification, and the files that it names against the disk.

deploy/validators python deploy/compose/check.py        says what is wrong, and fails
"""

import importlib.resources
import json
import pathlib
import sys

import jsonschema
import yaml

DEPLOY = pathlib.Path(__file__).resolve().parent.parent


def main():
    schema = json.loads((importlib.resources.files("compose") / "config/compose_spec.json").read_text())
    document = yaml.safe_load((DEPLOY / "compose.yaml").read_text())
    # Newer than the schema.
    assert document.pop("name") == "rampart"
    problems = [f"{list(error.path)}: {error.message}" for error in jsonschema.Draft7Validator(schema).iter_errors(document)]

    secrets = set(document["secrets"])
    held = set()
    for name, service in document["services"].items():
        # A program of its own waits for what others bring: nothing makes a connector's secrets.
        if "profiles" not in service:
            held.update(service.get("secrets", []))
        for secret in service.get("secrets", []):
            if secret not in secrets:
                problems.append(f"{name}: there is no secret '{secret}'")
        for value in map(str, service.get("environment", {}).values()):
            secret = value.removeprefix("/run/secrets/")
            if secret != value and secret not in service["secrets"]:
                problems.append(f"{name}: '{value}' is not mounted")
        for volume in service.get("volumes", []):
            source = volume.split(":")[0]
            if source.startswith(".") and not (DEPLOY / source).exists():
                problems.append(f"{name}: there is no '{source}'")
        for other in service.get("depends_on", []):
            if other not in document["services"]:
                problems.append(f"{name}: there is no service '{other}'")
    for name, secret in document["secrets"].items():
        if secret["file"] != f"./compose/secrets/{name}":
            problems.append(f"secret {name}: is in '{secret['file']}'")
    print(*document["services"])
    print(*sorted(held))
    print(*problems, sep="\n")
    return 1 if problems else 0


sys.exit(main())
