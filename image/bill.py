"""The bill of materials of the image, as CycloneDX 1.5: crates that are in the binary, and the packages of libraries beside it.

    python3 image/bill.py LIBRARY... >sbom.cdx.json

The same sources give the same bill: it holds no time and no random number.
"""

import json
import re
import subprocess
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]


def output(*command):
    """What a program prints."""
    return subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.PIPE, text=True).stdout


def crates():
    """(the root's id, packages by id, what each is linked with), build and test dependencies left out."""
    host = re.search(r"^host: (.+)$", output("rustc", "-vV"), re.M).group(1)
    metadata = json.loads(output("cargo", "metadata", "--format-version", "1", "--locked", "--filter-platform", host))
    linked = {node["id"]: sorted(dep["pkg"] for dep in node["deps"] if any(kind["kind"] is None for kind in dep["dep_kinds"]))
              for node in metadata["resolve"]["nodes"]}
    root, reached = metadata["resolve"]["root"], set()
    waiting = [root]
    while waiting:
        package = waiting.pop()
        if package not in reached:
            reached.add(package)
            waiting += linked[package]
    return root, {package["id"]: package for package in metadata["packages"] if package["id"] in reached}, linked


def sums():
    """Checksums of crates, by name and version."""
    lock = tomllib.loads((ROOT / "Cargo.lock").read_text())
    return {(one["name"], one["version"]): one.get("checksum") for one in lock["package"]}


def crate(package, checksum):
    """A crate as a component."""
    url = f"pkg:cargo/{package['name']}@{package['version']}"
    component = {"type": "library", "bom-ref": url, "name": package["name"], "version": package["version"], "purl": url}
    if package["license"]:
        component["licenses"] = [{"expression": package["license"].replace("/", " OR ")}]
    if checksum:
        component["hashes"] = [{"alg": "SHA-256", "content": checksum}]
    return component


def debian(libraries):
    """The Debian packages that libraries come from, as components."""
    found = {}
    for library in libraries:
        # Directories may be links into /usr, and dpkg knows one of the names.
        places = [library, str(Path(library).resolve()), str(Path(library).resolve()).removeprefix("/usr")]
        for place in places:
            said = subprocess.run(["dpkg-query", "-S", place], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
            if said.returncode == 0:
                break
        else:
            sys.exit(f"no package owns {library}")
        name = said.stdout.split(": ")[0]
        version, architecture = output("dpkg-query", "-W", "-f", "${Version} ${Architecture}", name).split()
        url = f"pkg:deb/debian/{name.split(':')[0]}@{version}?arch={architecture}"
        found[url] = {"type": "library", "bom-ref": url, "name": name.split(":")[0], "version": version, "purl": url}
    return [found[url] for url in sorted(found)]


def main():
    """Prints it."""
    root, packages, linked = crates()
    checksums = sums()
    components = {key: crate(package, checksums.get((package["name"], package["version"])))
                  for key, package in packages.items()}
    system = debian(sys.argv[1:])
    main_component = {**components[root], "type": "application"}
    others = sorted((one for key, one in components.items() if key != root), key=lambda one: one["bom-ref"])
    dependencies = [{"ref": components[key]["bom-ref"], "dependsOn": sorted(components[dep]["bom-ref"] for dep in linked[key])}
                    for key in sorted(components, key=lambda key: components[key]["bom-ref"])]
    for entry in dependencies:
        if entry["ref"] == main_component["bom-ref"]:
            entry["dependsOn"] += [one["bom-ref"] for one in system]
    bill = {"bomFormat": "CycloneDX", "specVersion": "1.5", "version": 1, "metadata": {"component": main_component},
            "components": others + system, "dependencies": dependencies}
    json.dump(bill, sys.stdout, indent=1)
    print()


if __name__ == "__main__":
    main()
