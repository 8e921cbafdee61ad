"""Stubs of KEDA's contract with scalers, made from its own file where LEASEHOLD_TEST_KEDA_PROTO names it, else from ours."""

import atexit
import importlib
import os
import shutil
import sys
import tempfile
from pathlib import Path

from google.protobuf import descriptor_pb2
from grpc_tools import protoc

from harness.stubs import ROOT

OURS = ROOT / "proto" / "externalscaler" / "externalscaler.proto"


def descriptors(path):
    """The file, as descriptors."""
    path = Path(path)
    with tempfile.NamedTemporaryFile() as out:
        if protoc.main(["protoc", f"-I{path.parent}", f"--descriptor_set_out={out.name}", path.name]) != 0:
            raise RuntimeError(f"protoc refused {path}")
        return descriptor_pb2.FileDescriptorSet.FromString(Path(out.name).read_bytes()).file[0]


def _generate():
    out = tempfile.mkdtemp(prefix="leasehold-keda.")
    atexit.register(shutil.rmtree, out, ignore_errors=True)
    path = Path(os.environ.get("LEASEHOLD_TEST_KEDA_PROTO") or OURS)
    code = protoc.main(["protoc", f"-I{path.parent}", f"--python_out={out}", f"--grpc_python_out={out}", path.name])
    if code != 0:
        raise RuntimeError(f"protoc refused {path}")
    sys.path.insert(0, out)
    return importlib.import_module("externalscaler_pb2"), importlib.import_module("externalscaler_pb2_grpc")


keda_pb, keda_rpc = _generate()
