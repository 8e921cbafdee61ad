//! Compiles the wire contract with protox (no protoc needed) and keeps the descriptor set for reflection.

use prost::Message;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let files =
        ["proto/leasehold/v1/queue.proto", "proto/leasehold/v1/admin.proto", "proto/leasehold/v1/connection.proto"];
    let set = protox::compile(files, ["proto"])?;
    let out = std::path::PathBuf::from(std::env::var("OUT_DIR")?);
    std::fs::write(out.join("leasehold.bin"), set.encode_to_vec())?;
    tonic_prost_build::configure().bytes(".leasehold.v1").compile_fds(set)?;
    println!("cargo:rerun-if-changed=proto");
    println!("cargo:rerun-if-changed=migrations");
    Ok(())
}
