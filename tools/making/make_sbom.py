#!/usr/bin/env python3
"""A software bill of materials (SPDX 2.3, JSON) of what tools/release.sh has made: the files with their digests, and the libraries in the wheels.

    tools/making/make_sbom.py FOLDER

Versions of the libraries come from the source archives that tools/making/wheel.sh built. SPDX-License-Identifier: MIT
"""
import datetime
import hashlib
import json
import os
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
LICENSES = {"jansson": "MIT", "pcre2": "BSD-3-Clause", "zlib": "Zlib", "libzip": "BSD-3-Clause", "hwloc": "BSD-3-Clause"}


def package(name, version, license_name, digest=None):
    found = {"SPDXID": f"SPDXRef-{re.sub('[^A-Za-z0-9.-]', '-', name)}", "name": name, "versionInfo": version, "downloadLocation": "NOASSERTION",
             "licenseConcluded": license_name, "licenseDeclared": license_name, "copyrightText": "NOASSERTION", "filesAnalyzed": False}
    return {**found, "checksums": [{"algorithm": "SHA256", "checksumValue": digest}]} if digest else found


def digest_of(path):
    return hashlib.sha256(path.read_bytes()).hexdigest()


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__.split("\n\n")[1].strip())
    folder = Path(sys.argv[1])
    files = sorted(p for p in folder.iterdir() if p.suffix in (".whl", ".gz"))
    sources = sorted(Path(os.environ.get("DEBERTA_WHEEL_CACHE", "/tmp/deberta-wheel-cache"), "sources").glob("*.orig.tar.*"))
    libraries = [package(p.name.split("_")[0], re.search(r"_(.*?)\.orig", p.name)[1], LICENSES[p.name.split("_")[0]], digest_of(p)) for p in sources]
    made = [package(p.name, re.search(r"-(\d+(\.\d+)+)", p.name)[1], "MIT", digest_of(p)) for p in files]
    if not made or {p["name"] for p in libraries} != set(LICENSES):
        sys.exit(f"make_sbom.py: {folder} has {len(made)} files, and the sources of {len(libraries)} libraries of {len(LICENSES)} are there")
    commit = subprocess.run(["git", "-C", ROOT, "log", "-1", "--format=%H %ct"], capture_output=True, text=True, check=True).stdout.split()
    links = [{"spdxElementId": "SPDXRef-DOCUMENT", "relationshipType": "DESCRIBES", "relatedSpdxElement": p["SPDXID"]} for p in made]
    links += [{"spdxElementId": p["SPDXID"], "relationshipType": "STATIC_LINK", "relatedSpdxElement": library["SPDXID"]}
              for p in made if p["name"].endswith(".whl") for library in libraries]
    created = datetime.datetime.fromtimestamp(int(commit[1]), datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")
    print(json.dumps({"spdxVersion": "SPDX-2.3", "dataLicense": "CC0-1.0", "SPDXID": "SPDXRef-DOCUMENT", "name": "deberta",
                      "documentNamespace": f"urn:deberta:{commit[0]}", "creationInfo": {"created": created, "creators": ["Tool: make_sbom.py"]},
                      "packages": made + libraries, "relationships": links}, indent=1))


if __name__ == "__main__":
    main()
