"""Reads an image as an engine does, and unpacks it: read_image.py IMAGE FOLDER ARCHITECTURE. Prints what it runs."""

import gzip
import hashlib
import io
import json
import sys
import tarfile

image, folder, architecture = sys.argv[1:]
archive = tarfile.open(image)


def blob(descriptor):
    data = archive.extractfile("blobs/" + descriptor["digest"].replace(":", "/")).read()
    assert "sha256:" + hashlib.sha256(data).hexdigest() == descriptor["digest"], descriptor
    assert len(data) == descriptor["size"], descriptor
    return data


assert json.load(archive.extractfile("oci-layout")) == {"imageLayoutVersion": "1.0.0"}
[entry] = json.load(archive.extractfile("index.json"))["manifests"]
assert entry["platform"] == {"architecture": architecture, "os": "linux"}, entry
manifest = json.loads(blob(entry))
config = json.loads(blob(manifest["config"]))
[layer] = manifest["layers"]
unzipped = gzip.decompress(blob(layer))
assert config["rootfs"] == {"type": "layers", "diff_ids": ["sha256:" + hashlib.sha256(unzipped).hexdigest()]}
assert (config["architecture"], config["os"]) == (architecture, "linux")
assert config["config"]["User"] == "65534:65534", config["config"]
assert config["config"]["Healthcheck"]["Test"] == ["CMD", "/tamis", "serve", "--health"]
[docker] = json.load(archive.extractfile("manifest.json"))
assert json.load(archive.extractfile(docker["Config"])) == config
assert [archive.extractfile(name).read() for name in docker["Layers"]] == [blob(layer)]
files = tarfile.open(fileobj=io.BytesIO(unzipped))
assert [(entry.name, oct(entry.mode), entry.uid) for entry in files] == [("tamis", "0o755", 0)], files.getmembers()
files.extractall(folder, filter="data")
print(*config["config"]["Entrypoint"], *config["config"]["Cmd"], sep="\n")
