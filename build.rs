//! Compiles the wire contract with protox (no protoc needed) and keeps the descriptor set for reflection.

use prost::Message;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let files = [
        "proto/leasehold/v1/queue.proto",
        "proto/leasehold/v1/admin.proto",
        "proto/leasehold/v1/connection.proto",
        "proto/externalscaler/externalscaler.proto",
        "proto/leasehold/v1/reservation.proto",
        "proto/leasehold/v1/stock_admin.proto",
    ];
    let set = protox::compile(files, ["proto"])?;
    let out = std::path::PathBuf::from(std::env::var("OUT_DIR")?);
    std::fs::write(out.join("leasehold.bin"), set.encode_to_vec())?;
    tonic_prost_build::configure().bytes(".leasehold.v1").compile_fds(set)?;
    println!("cargo:rerun-if-changed=proto");
    println!("cargo:rerun-if-changed=migrations");
    // A broker to compare with, whose statements name nobody: see benches/attribution.rs.
    println!("cargo:rustc-check-cfg=cfg(leasehold_without_attribution)");
    println!("cargo:rerun-if-env-changed=BENCH_WITHOUT_ATTRIBUTION");
    if std::env::var_os("BENCH_WITHOUT_ATTRIBUTION").is_some() {
        println!("cargo:rustc-cfg=leasehold_without_attribution");
    }
    Ok(())
}
