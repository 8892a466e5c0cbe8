# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""
Usage: manifests.py DIRECTORY

Checks the structure of the manifests for Kubernetes: what a schema would ask of the fields
that they use, and that they fit each other. Debian has no validator for them.
"""
import pathlib
import sys

import jsonschema
import yaml


def obj(required, **properties):
    """A schema of an object that has nothing but these properties."""
    return {"type": "object", "properties": properties, "required": required.split(),
            "additionalProperties": False}


def items(schema):
    """A schema of a list that is not empty."""
    return {"type": "array", "items": schema, "minItems": 1}


TEXT = {"type": "string", "minLength": 1}
NAME = {"type": "string", "pattern": "^[a-z0-9]([-a-z0-9]*[a-z0-9])?$"}
PATH = {"type": "string", "pattern": "^/"}
BOOL = {"type": "boolean"}
LABELS = {"type": "object", "additionalProperties": TEXT}
META = obj("", name=NAME, namespace=NAME, labels=LABELS)
CONTAINER = obj(
    "name image", name=NAME, image=TEXT, command=items(TEXT), args=items(TEXT),
    resources=obj("limits", limits={"type": "object", "additionalProperties": {
        "type": ["integer", "string"], "pattern": "^[0-9]+(Mi|Gi)?$"}}),
    securityContext=obj(
        "", privileged=BOOL, runAsNonRoot=BOOL, runAsUser={"type": "integer"},
        allowPrivilegeEscalation=BOOL, readOnlyRootFilesystem=BOOL,
        capabilities=obj("", add=items(TEXT), drop=items(TEXT)),
        seccompProfile=obj("type", type={"enum": ["RuntimeDefault", "Localhost",
                                                  "Unconfined"]})),
    volumeMounts=items(obj("name mountPath", name=NAME, mountPath=PATH)))
POD_SPEC = obj(
    "containers", containers=items(CONTAINER), hostNetwork=BOOL, priorityClassName=TEXT,
    volumes=items(obj("name hostPath", name=NAME, hostPath=obj("path", path=PATH))))
POD = obj("apiVersion kind metadata spec", apiVersion={"const": "v1"},
          kind={"const": "Pod"}, metadata=META, spec=POD_SPEC)
DAEMON_SET = obj(
    "apiVersion kind metadata spec", apiVersion={"const": "apps/v1"},
    kind={"const": "DaemonSet"}, metadata=META,
    spec=obj("selector template", selector=obj("matchLabels", matchLabels=LABELS),
             template=obj("metadata spec", metadata=META, spec=POD_SPEC)))
PLUGIN = obj("name groups", name=NAME, groups=items(obj(
    "paths", count={"type": "integer", "minimum": 1},
    paths=items(obj("path", path=PATH, mountPath=PATH,
                    permissions={"pattern": "^[rwm]+$"})))))


def load(path, schema):
    """Returns the document, which must be the only one and fit the schema."""
    with open(path, encoding="utf-8") as file:
        document = yaml.safe_load(file)
    jsonschema.validate(document, schema)
    return document


def main():
    directory = pathlib.Path(sys.argv[1])
    pod = load(directory / "pod.yaml", POD)
    daemon_set = load(directory / "device-plugin.yaml", DAEMON_SET)["spec"]
    template = daemon_set["template"]
    assert daemon_set["selector"]["matchLabels"] == template["metadata"]["labels"]
    container = template["spec"]["containers"][0]
    assert {mount["name"] for mount in container["volumeMounts"]} == \
        {volume["name"] for volume in template["spec"]["volumes"]}
    option, value = container["args"]
    assert option == "--device"
    plugin = yaml.safe_load(value)
    jsonschema.validate(plugin, PLUGIN)
    paths = plugin["groups"][0]["paths"]
    assert [path["path"] for path in paths] == ["/dev/rdma_post"] * 2
    assert [path.get("mountPath") for path in paths] == [None, "/dev/infiniband/rdma_post"]
    limits = pod["spec"]["containers"][0]["resources"]["limits"]
    assert limits[f"squat.ai/{plugin['name']}"] == 1
    # The schemas must refuse what is wrong.
    pod["spec"]["containers"][0]["volumeMount"] = []
    assert not jsonschema.Draft7Validator(POD).is_valid(pod)
    print("valid")


main()
