//! Lane time per caller, read from the broker's metrics as anybody may read them.

use std::{collections::BTreeMap, io, net::SocketAddr, time::Duration};

use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpStream,
    time::timeout,
};

const SERIES: &str = "leasehold_db_connection_hold_time_seconds_total{";
/// Metrics are some tens of KiB.
const AT_MOST: u64 = 8 << 20;

/// Seconds of lane time by caller.
pub(super) async fn read(address: SocketAddr) -> io::Result<BTreeMap<String, f64>> {
    let page = timeout(Duration::from_secs(5), page(address)).await??;
    Ok(parse(&page))
}

async fn page(address: SocketAddr) -> io::Result<String> {
    let mut stream = TcpStream::connect(address).await?;
    // HTTP/1.0, so that the answer comes in one piece
    stream.write_all(b"GET /metrics HTTP/1.0\r\nHost: leasehold\r\n\r\n").await?;
    let mut page = String::new();
    stream.take(AT_MOST).read_to_string(&mut page).await?;
    Ok(page)
}

fn parse(page: &str) -> BTreeMap<String, f64> {
    page.lines()
        .filter_map(|line| line.strip_prefix(SERIES))
        .filter_map(|line| {
            let (labels, value) = line.rsplit_once("} ")?;
            let caller = labels.split(',').find_map(|label| label.strip_prefix("conn_tag=\""))?.strip_suffix('"')?;
            Some((caller.to_owned(), value.trim().parse().ok()?))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lane_time_is_found_in_the_metrics() {
        let page = "HTTP/1.0 200 OK\r\n\r\n# TYPE leasehold_db_connection_hold_time_seconds_total counter\n\
                    leasehold_db_connection_hold_time_seconds_total{conn_tag=\"email_delivery\",x=\"lanes\"} 0.75\n\
                    leasehold_db_connection_hold_time_seconds_total{conn_tag=\"leasehold.reaper\"} 1\n\
                    leasehold_streams 4\n";
        let times = parse(page);
        assert_eq!(times.len(), 2);
        assert!((times["email_delivery"] - 0.75).abs() < f64::EPSILON);
    }
}
