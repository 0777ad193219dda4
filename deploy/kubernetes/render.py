"""Renders the overlays and the chart, holds them against the API of Kubernetes and against each other.

deploy/validators python deploy/kubernetes/render.py        says what is wrong, and fails
"""

import os
import pathlib
import subprocess
import sys
import tempfile

import helm_python.chart as helm
import kubernetes_validate
import yaml

DEPLOY = pathlib.Path(__file__).resolve().parent.parent
# The oldest and the newest minor version that the manifests are for.
KUBERNETES = ["1.30", "1.37"]
# Kinds of the operator of Prometheus, which the API of Kubernetes itself does not have.
OTHERS = {"ServiceMonitor", "PrometheusRule"}
# The values of the chart that give what an overlay does, and those that give what a component adds to it.
CHART_VALUES = {"single": {}, "ha": yaml.safe_load((DEPLOY / "helm/values-ha.yaml").read_text())}
COMPONENTS = {
    "connectors": {"connectorsTlsSecretName": "rampart-connectors-tls"},
    "policy-cache": {"policyCache": {"storage": "4Gi"}},
}
# Ports that a partner's endpoint may have, as core/src/notify/callbacks/target.rs takes them.
CALLBACK_PORTS = [80, 443, 1024, 8443, 65535]
# The address of NodeLocal DNSCache on every node.
NODE_RESOLVER = "169.254.20.10/32"
# Annotations of Helm's own, which kustomize has no use for.
OF_HELM = ["helm.sh/hook", "helm.sh/hook-delete-policy", "checksum/settings"]


def name(thing):
    return f"{thing['kind']}/{thing['metadata']['name']}"


def by_name(things):
    found = {name(thing): thing for thing in things if thing}
    return dict(sorted(found.items()))


def overlay(which, *components):
    """What an overlay gives, or one that adds components to it."""
    with tempfile.TemporaryDirectory() as folder:
        # Kustomize follows relative paths alone, from where the folder really is.
        folder = pathlib.Path(folder).resolve()
        from_here = lambda path: os.path.relpath(DEPLOY / "kubernetes" / path, folder)
        own = {"namespace": "rampart", "resources": [from_here(f"overlays/{which}")]}
        own["components"] = [from_here(f"components/{component}") for component in components]
        (folder / "kustomization.yaml").write_text(yaml.safe_dump(own))
        command = [str(pathlib.Path(sys.executable).parent / "kubectl"), "kustomize", str(folder)]
        rendered = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    return by_name(yaml.safe_load_all(rendered))


def chart(values):
    with helm.Chart.load(DEPLOY / "helm") as loaded:
        files = loaded.render(values, name="rampart", namespace="rampart")
    return by_name(thing for text in files.values() for thing in yaml.safe_load_all(text))


def without_helm(thing):
    """A manifest without Helm's annotations, in the namespace of the release."""
    for metadata in [thing["metadata"], thing.get("spec", {}).get("template", {}).get("metadata", {})]:
        for annotation in OF_HELM:
            metadata.get("annotations", {}).pop(annotation, None)
        if metadata.get("annotations") == {}:
            del metadata["annotations"]
    thing["metadata"].setdefault("namespace", "rampart")
    return thing


def validity(which, things):
    for full, thing in things.items():
        for version in KUBERNETES if thing["kind"] not in OTHERS else []:
            try:
                kubernetes_validate.validate(thing, version, strict=True)
            except kubernetes_validate.ValidationError as error:
                yield f"{which}: {full} is not of Kubernetes {version}: {error.message}"


def differences(which, left, right):
    for full in sorted(left.keys() | right.keys()):
        if full not in left or full not in right:
            yield f"{which}: {full} is in {'the chart' if full in right else 'the overlay'} alone"
        elif left[full] != right[full]:
            yield f"{which}: {full} differs:\n  overlay {left[full]}\n  chart   {right[full]}"


def unreachable(which, things):
    """Listeners beyond loopback that lack a port of the pod, a Service, or a rule that lets callers in."""
    container = things["Deployment/rampart"]["spec"]["template"]["spec"]["containers"][0]
    names = {port["containerPort"]: port["name"] for port in container["ports"]}
    services = [thing["spec"] for thing in things.values() if thing["kind"] == "Service"]
    served = {port["targetPort"] for service in services for port in service["ports"]}
    policies = [thing["spec"] for thing in things.values() if thing["kind"] == "NetworkPolicy"]
    edge = {"matchLabels": {"app.kubernetes.io/name": "rampart", "app.kubernetes.io/component": "edge"}}
    rules = [rule for policy in policies if policy["podSelector"] == edge for rule in policy["ingress"]]
    let_in = {port["port"] for rule in rules for port in rule["ports"]}
    for setting, address in things["ConfigMap/rampart-settings"]["data"].items():
        if setting.endswith("__LISTEN") and not address.startswith("127."):
            port = names.get(int(address.rpartition(":")[2]))
            if port not in served & let_in:
                yield f"{which}: nobody reaches {setting}, port {port}"


def undelivered(which, things):
    """Ports of partners' endpoints that no rule lets an edge reach."""
    rules = things["NetworkPolicy/rampart-edge"]["spec"]["egress"]
    world = [rule for rule in rules if any("ipBlock" in peer for peer in rule.get("to", []))]
    reached = [(port["port"], port.get("endPort", port["port"])) for rule in world for port in rule["ports"]]
    for port in CALLBACK_PORTS:
        if not any(first <= port <= last for first, last in reached):
            yield f"{which}: no callback reaches port {port}"


def unresolved(which, things):
    """Pods that may ask the DNS of the cluster and not the one of their node, NodeLocal DNSCache."""
    for full, thing in things.items():
        rules = thing["spec"].get("egress", []) if thing["kind"] == "NetworkPolicy" else []
        for rule in rules:
            if not any(port["port"] == 53 for port in rule.get("ports", [])):
                continue
            if {"ipBlock": {"cidr": NODE_RESOLVER}} not in rule.get("to", []):
                yield f"{which}: {full} does not let {NODE_RESOLVER} be asked"


def stuck(which, things):
    """Volumes of one node that an update would wait for, as the pod before holds them until the next one is ready."""
    spec = things["Deployment/rampart"]["spec"]
    for volume in spec["template"]["spec"]["volumes"]:
        claim = things.get(f"PersistentVolumeClaim/{volume.get('persistentVolumeClaim', {}).get('claimName')}")
        is_shared = claim is None or claim["spec"]["accessModes"] == ["ReadWriteMany"]
        if not is_shared and spec["strategy"]["type"] != "Recreate":
            yield f"{which}: no update gets the volume {volume['name']}"


def unfit_for_files(which, things):
    """A folder for files without a name that is not the pod's own, and empty at its start."""
    folder = things["ConfigMap/rampart-settings"]["data"].get("TMPDIR")
    pod = things["Deployment/rampart"]["spec"]["template"]["spec"]
    mounts = {mount["mountPath"]: mount["name"] for mount in pod["containers"][0]["volumeMounts"]}
    own = [volume["name"] for volume in pod["volumes"] if "emptyDir" in volume]
    if folder and mounts.get(folder) not in own:
        yield f"{which}: TMPDIR={folder} is no emptyDir"


def secrets(things):
    """The Secrets that a pod of an edge waits for."""
    volumes = things["Deployment/rampart"]["spec"]["template"]["spec"]["volumes"]
    return [f"Secret/{volume['secret']['secretName']}" for volume in volumes if "secret" in volume]


def main():
    problems = []
    rendered = [(which, overlay(which), values) for which, values in CHART_VALUES.items()]
    for which, values in CHART_VALUES.items():
        for component, added in COMPONENTS.items():
            rendered.append((f"{which}+{component}", overlay(which, component), values | added))
    for which, of_overlay, values in rendered:
        of_chart = chart(values)
        problems += validity(which, of_overlay)
        problems += validity(f"{which}, chart", of_chart)
        problems += unreachable(which, of_overlay)
        problems += undelivered(which, of_overlay)
        problems += unresolved(which, of_overlay)
        problems += stuck(which, of_overlay)
        problems += unfit_for_files(which, of_overlay)
        of_chart = {full: without_helm(thing) for full, thing in of_chart.items()}
        problems += differences(which, of_overlay, of_chart)
        print(which, *of_overlay, *secrets(of_overlay))
    of_one_node = {"policyCache": {"storage": "4Gi", "accessMode": "ReadWriteOnce"}}
    for which, values in CHART_VALUES.items():
        problems += stuck(f"{which}, chart with a cache of one node", chart(values | of_one_node))
    rules = yaml.safe_load((DEPLOY / "prometheus/rules.yaml").read_text())
    if overlay("ha")["PrometheusRule/rampart"]["spec"] != rules:
        problems.append("ha: PrometheusRule/rampart is not deploy/prometheus/rules.yaml")
    lint = helm.lint(DEPLOY / "helm", {}, strict=True)
    # Severity 1 is advice: an icon.
    problems += [f"chart: {message}" for message in lint["messages"] if message["severity"] > 1]
    print(*problems, sep="\n")
    return 1 if problems else 0


sys.exit(main())
