"""Writes what is in the `baton` command as a CycloneDX 1.6 document: crates that are compiled in, and npm packages of the web page.

    python3 scripts/sbom/sbom.py target/baton.cdx.json

The same sources give the same bytes. With the library `cyclonedx-python-lib` installed, the document is checked against the schema.
"""

import base64
import json
import pathlib
import re
import subprocess
import sys
import uuid
from datetime import datetime, timezone

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent


def crates():
    """The packages that `baton` needs to be built, without what only tests need."""
    command = ["cargo", "metadata", "--locked", "--format-version", "1"]
    metadata = json.loads(subprocess.run(command, cwd=ROOT, check=True, capture_output=True).stdout)
    packages = {package["id"]: package for package in metadata["packages"]}
    nodes = {node["id"]: node for node in metadata["resolve"]["nodes"]}
    top = next(package["id"] for package in metadata["packages"] if package["name"] == "baton")
    edges, waiting = {}, [top]
    while waiting:
        current = waiting.pop()
        if current in edges:
            continue
        is_used = lambda dep: any(kind["kind"] != "dev" for kind in dep["dep_kinds"])
        edges[current] = [dep["pkg"] for dep in nodes[current]["deps"] if is_used(dep)]
        waiting += edges[current]
    reference = lambda id: f"pkg:cargo/{packages[id]['name']}@{packages[id]['version']}"
    checksums = lock_checksums()
    components = [crate(packages[id], reference(id), checksums) for id in edges if id != top]
    graph = {reference(id): sorted(map(reference, to)) for id, to in edges.items()}
    return packages[top], components, graph


def lock_checksums():
    lock = (ROOT / "Cargo.lock").read_text()
    pattern = r'name = "([^"]+)"\nversion = "([^"]+)"(?:\nsource = "[^"]+")?(?:\nchecksum = "([0-9a-f]+)")?'
    return {(name, version): checksum for name, version, checksum in re.findall(pattern, lock)}


def crate(package, reference, checksums):
    component = {"type": "library", "bom-ref": reference, "name": package["name"], "version": package["version"]}
    checksum = checksums.get((package["name"], package["version"]))
    if checksum:
        component["hashes"] = [{"alg": "SHA-256", "content": checksum}]
    if package["license"]:
        component["licenses"] = [{"expression": package["license"].replace("/", " OR ")}]
    component["purl"] = reference
    return component


def npm_packages():
    """What the page loads in a browser: production dependencies of the lock file."""
    lock = json.loads((ROOT / "ui/package-lock.json").read_text())
    components = {}
    for path, package in lock["packages"].items():
        if not path or package.get("dev") or package.get("optional"):
            continue
        name = path.rsplit("node_modules/", 1)[1]
        reference = f"pkg:npm/{name.replace('@', '%40')}@{package['version']}"
        component = {"type": "library", "bom-ref": reference, "name": name, "version": package["version"]}
        if package.get("integrity", "").startswith("sha512-"):
            digest = base64.b64decode(package["integrity"][len("sha512-"):]).hex()
            component["hashes"] = [{"alg": "SHA-512", "content": digest}]
        if package.get("license"):
            component["licenses"] = [{"expression": package["license"]}]
        component["purl"] = reference
        components[reference] = component
    return list(components.values())


def document():
    baton, components, graph = crates()
    page = npm_packages()
    top = f"pkg:cargo/{baton['name']}@{baton['version']}"
    # The page is part of the command, and each of its packages is below it.
    graph[top] = sorted(graph[top] + [package["bom-ref"] for package in page])
    components = sorted(components + page, key=lambda component: component["bom-ref"])
    main = {"type": "application", "bom-ref": top, "name": baton["name"], "version": baton["version"], "purl": top}
    main["licenses"] = [{"expression": baton["license"]}]
    dependencies = [{"ref": ref, "dependsOn": to} for ref, to in sorted(graph.items())]
    content = json.dumps([components, dependencies])
    return {
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "serialNumber": f"urn:uuid:{uuid.uuid5(uuid.NAMESPACE_URL, content)}",
        "version": 1,
        "metadata": {"timestamp": commit_time(), "component": main},
        "components": components,
        "dependencies": dependencies,
    }


def commit_time():
    command = ["git", "-C", str(ROOT), "log", "-1", "--format=%ct"]
    ran = subprocess.run(command, capture_output=True, text=True)
    seconds = int(ran.stdout) if ran.returncode == 0 and ran.stdout.strip() else 0
    return datetime.fromtimestamp(seconds, timezone.utc).isoformat()


def check(text):
    """Returns whether the schema was there to check with. A document that does not follow it ends the program."""
    try:
        from cyclonedx.schema import SchemaVersion
        from cyclonedx.validation.json import JsonStrictValidator
    except ImportError:
        return False
    error = JsonStrictValidator(SchemaVersion.V1_6).validate_str(text)
    if error:
        sys.exit(f"sbom: the document does not follow the schema: {error}")
    return True


def main():
    target = pathlib.Path(sys.argv[1])
    bom = document()
    known = {component["bom-ref"] for component in bom["components"]} | {bom["metadata"]["component"]["bom-ref"]}
    missing = {ref for one in bom["dependencies"] for ref in one["dependsOn"]} - known
    if missing:
        sys.exit(f"sbom: no component for {sorted(missing)}")
    unlicensed = [one["bom-ref"] for one in bom["components"] if "licenses" not in one]
    if unlicensed:
        sys.exit(f"sbom: no licence for {unlicensed}")
    text = json.dumps(bom, indent=1) + "\n"
    is_checked = check(text)
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text(text)
    kinds = {kind: sum(one["purl"].startswith(f"pkg:{kind}/") for one in bom["components"]) for kind in ("cargo", "npm")}
    schema = "follows the schema" if is_checked else "not checked against the schema"
    print(f"sbom: {kinds['cargo']} crates and {kinds['npm']} npm packages in {target}, {schema}")


if __name__ == "__main__":
    main()
