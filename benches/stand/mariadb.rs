//! A `MariaDB` server of one's own, in a temporary directory, gone when the measurement ends.

use std::{
    fs::{self, File},
    os::unix::fs::chown,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    time::{Duration, Instant},
};

use sqlx::{AssertSqlSafe, ConnectOptions, Executor, MySqlConnection, Row, mysql::MySqlConnectOptions};
use tempfile::TempDir;

use super::{Outcome, postgres::free_port};

/// Who brokers are; the measurement's own connections are root's.
const USER: &str = "leasehold";

pub(crate) struct MariaDb {
    server: Child,
    port: u16,
    password: String,
    directory: TempDir,
}

impl MariaDb {
    /// Makes and starts a server that keeps what it committed, with `settings` over its defaults.
    pub(crate) async fn start(bindir: Option<&Path>, settings: &[&str]) -> Outcome<Self> {
        let (directory, port) = (tempfile::tempdir()?, free_port()?);
        let data = directory.path().join("data");
        fs::create_dir(&data)?;
        let mut account = None;
        if rustix::process::geteuid().is_root() {
            let (name, uid, gid) = owner()?;
            for path in [directory.path(), &data] {
                chown(path, Some(uid), Some(gid))?;
            }
            account = Some(format!("--user={name}"));
        }
        let mut install = Command::new(program(bindir, "mariadb-install-db")?);
        install.arg("--no-defaults").arg(format!("--datadir={}", data.display())).args(&account);
        install.args(["--skip-test-db", "--auth-root-authentication-method=normal"]);
        let made = install.current_dir("/").output()?;
        if !made.status.success() {
            return Err(format!("mariadb-install-db failed: {}", String::from_utf8_lossy(&made.stderr)).into());
        }

        let at = |name: &str| directory.path().join(name).display().to_string();
        let mut server = Command::new(program(bindir, "mariadbd")?);
        server.arg("--no-defaults").arg(format!("--datadir={}", data.display())).args(&account);
        server.arg(format!("--port={port}")).arg(format!("--socket={}", at("socket")));
        server.arg(format!("--pid-file={}", at("pid"))).arg(format!("--slow-query-log-file={}", at("slow.log")));
        server.args(["--bind-address=127.0.0.1", "--innodb-flush-log-at-trx-commit=1", "--sync-binlog=1"]);
        // Every statement is a slow one; none is written until somebody watches.
        server.args(["--slow-query-log=1", "--long-query-time=0", "--log-output=NONE"]);
        server.args(settings.iter().map(|setting| format!("--{setting}")));
        let log = File::create(directory.path().join("server.log"))?;
        let server = server.current_dir("/").stdin(Stdio::null()).stdout(Stdio::null()).stderr(log).spawn()?;
        let mut started = Self { server, port, password: format!("{:032x}", rand::random::<u128>()), directory };
        started.wait_until_up().await?;
        Ok(started)
    }

    async fn wait_until_up(&mut self) -> Outcome<()> {
        let give_up = Instant::now() + Duration::from_secs(60);
        let mut session = loop {
            match self.session(None).await {
                Ok(session) => break session,
                Err(error) if Instant::now() > give_up || self.server.try_wait()?.is_some() => {
                    let log = fs::read_to_string(self.directory.path().join("server.log"))?;
                    return Err(format!("the server does not start: {error}\n{log}").into());
                }
                Err(_) => tokio::time::sleep(Duration::from_millis(50)).await,
            }
        };
        let grants = [
            format!("create user {USER}@'%' identified by '{}'", self.password),
            format!("grant all on *.* to {USER}@'%'"),
        ];
        for grant in grants {
            session.execute(AssertSqlSafe(grant)).await?;
        }
        Ok(())
    }

    /// A session of root's.
    async fn session(&self, database: Option<&str>) -> Outcome<MySqlConnection> {
        let options = MySqlConnectOptions::new().socket(self.directory.path().join("socket")).username("root");
        let options = options.disable_statement_logging();
        Ok(if let Some(name) = database { options.database(name) } else { options }.connect().await?)
    }

    /// Makes a database; answers the URL that a broker is given.
    pub(crate) async fn create_database(&self, name: &str) -> Outcome<String> {
        self.session(None).await?.execute(AssertSqlSafe(format!("create database {name}"))).await?;
        Ok(format!("mariadb://{USER}:{}@127.0.0.1:{}/{name}", self.password, self.port))
    }

    /// A connection of the measurement's own.
    pub(crate) async fn connect(&self, database: &str) -> Outcome<MySqlConnection> {
        self.session(Some(database)).await
    }

    /// Connections to a database, the measurement's own left out.
    pub(crate) async fn connections(&self, database: &str) -> Outcome<i64> {
        let count = "select count(*) from information_schema.processlist where db = ? and user = ?";
        let mut session = self.session(None).await?;
        Ok(session.fetch_one(sqlx::query(count).bind(database).bind(USER)).await?.try_get(0)?)
    }

    /// Deadlocks since the server started.
    pub(crate) async fn deadlocks(&self) -> Outcome<u64> {
        let row = self.session(None).await?.fetch_one("show global status like 'innodb_deadlocks'").await?;
        Ok(row.try_get::<String, _>(1)?.parse()?)
    }

    /// Writes every statement to the log for `window`; what was written in it.
    pub(crate) async fn slow_log(&self, window: Duration) -> Outcome<String> {
        let mut session = self.session(None).await?;
        let path = self.directory.path().join("slow.log");
        let before = fs::read(&path).map_or(0, |log| log.len());
        session.execute("set global log_output = 'FILE'").await?;
        tokio::time::sleep(window).await;
        session.execute("set global log_output = 'NONE'").await?;
        Ok(String::from_utf8_lossy(&fs::read(&path)?[before..]).into_owned())
    }

    /// Process id of the server.
    pub(crate) fn pid(&self) -> u32 {
        self.server.id()
    }

    /// The server's version, for people.
    pub(crate) async fn version(&self) -> Outcome<String> {
        let row = self.session(None).await?.fetch_one("select version()").await?;
        let version: String = row.try_get(0)?;
        Ok(format!("MariaDB {}", version.split('-').next().unwrap_or_default()))
    }

    /// Whose statements of the log are a broker's.
    pub(crate) fn is_broker(line: &str) -> bool {
        line.contains(&format!("{USER}[{USER}]"))
    }
}

impl Drop for MariaDb {
    fn drop(&mut self) {
        super::broker::end(&mut self.server, rustix::process::Signal::TERM, Duration::from_secs(20));
    }
}

/// Who runs the server where root starts it: only Debian's whole package makes an account for it.
fn owner() -> Outcome<(String, u32, u32)> {
    let users = fs::read_to_string("/etc/passwd")?;
    let line = ["mysql:", "nobody:"].iter().find_map(|name| users.lines().find(|line| line.starts_with(name)));
    let fields: Vec<&str> = line.ok_or("root needs a user 'mysql' or 'nobody'")?.split(':').collect();
    match fields[..] {
        [name, _, uid, gid, ..] => Ok((name.to_owned(), uid.parse()?, gid.parse()?)),
        _ => Err("the server's user has no ids".into()),
    }
}

fn program(bindir: Option<&Path>, name: &str) -> Outcome<PathBuf> {
    let places = bindir.map_or_else(|| ["/usr/sbin", "/usr/bin"].map(PathBuf::from).into(), |dir| vec![dir.to_owned()]);
    let found = places.into_iter().map(|place| place.join(name)).find(|program| program.is_file());
    found.ok_or_else(|| format!("no {name} found: say where MariaDB's programs are with -- --bindir DIR").into())
}
