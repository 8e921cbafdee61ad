"""Stubs of the wire contract, generated from the proto when the tests begin, so that the client is not ours."""

import atexit
import importlib
import shutil
import sys
import tempfile
from pathlib import Path

import grpc_tools
from grpc_tools import protoc

ROOT = Path(__file__).resolve().parents[2]


def _generate():
    out = tempfile.mkdtemp(prefix="leasehold-stubs.")
    atexit.register(shutil.rmtree, out, ignore_errors=True)
    well_known = Path(grpc_tools.__file__).parent / "_proto"
    code = protoc.main(["protoc", f"-I{ROOT / 'proto'}", f"-I{well_known}", f"--python_out={out}",
                        f"--grpc_python_out={out}", *(f"leasehold/v1/{name}.proto" for name in NAMES)])
    if code != 0:
        raise RuntimeError("protoc refused the contract")
    sys.path.insert(0, out)
    for name in NAMES:
        yield importlib.import_module(f"leasehold.v1.{name}_pb2")
        yield importlib.import_module(f"leasehold.v1.{name}_pb2_grpc")


NAMES = ("queue", "admin", "connection", "reservation", "stock_admin")
(pb, rpc, admin_pb, admin_rpc, connection_pb, connection_rpc, stock_pb, stock_rpc, stock_admin_pb,
 stock_admin_rpc) = _generate()
