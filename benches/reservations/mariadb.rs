//! A `MariaDB` server of one's own, in a temporary directory, gone when the measurement ends.

use std::{
    fs::{self, File, Permissions},
    os::unix::fs::{PermissionsExt as _, chown},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    time::{Duration, Instant},
};

use sqlx::{AssertSqlSafe, Connection, Executor as _, MySqlConnection, Row as _, mysql::MySqlConnectOptions};
use tempfile::TempDir;

use super::stand::{Outcome, broker::end, postgres::free_port};

const USER: &str = "leasehold";
/// Durable, as the broker asks for, and with enough memory that the disk is asked for commits alone.
const SETTINGS: [&str; 7] = [
    "--innodb-flush-log-at-trx-commit=1",
    "--sync-binlog=1",
    "--innodb-buffer-pool-size=512M",
    "--innodb-log-file-size=1G",
    "--max-connections=200",
    "--performance-schema=0",
    "--bind-address=127.0.0.1",
];

pub(crate) struct MariaDb {
    server: Child,
    port: u16,
    password: String,
    directory: TempDir,
}

impl MariaDb {
    /// Makes and starts a server with `settings` over the ones that every measurement has.
    pub(crate) async fn start(settings: &[&str]) -> Outcome<Self> {
        let (directory, password) = (tempfile::tempdir()?, format!("{:032x}", rand::random::<u128>()));
        fs::set_permissions(directory.path(), Permissions::from_mode(0o755))?;
        let (data, run) = (directory.path().join("data"), directory.path().join("run"));
        let owner = owner()?;
        for made in [&data, &run] {
            fs::create_dir(made)?;
            if let Some((_, uid, gid)) = &owner {
                chown(made, Some(*uid), Some(*gid))?;
            }
        }
        let user = owner.map(|(name, ..)| format!("--user={name}"));
        let mut install = Command::new(find("mariadb-install-db")?);
        install.args(["--no-defaults", "--skip-test-db", "--auth-root-authentication-method=normal"]);
        install.arg(format!("--datadir={}", data.display())).args(&user);
        let made = install.current_dir("/").stdin(Stdio::null()).output()?;
        if !made.status.success() {
            return Err(format!("mariadb-install-db failed: {}", String::from_utf8_lossy(&made.stderr)).into());
        }
        let (port, log) = (free_port()?, File::create(directory.path().join("server.log"))?);
        let mut server = Command::new(find("mariadbd")?);
        server.arg("--no-defaults").arg(format!("--datadir={}", data.display())).arg(format!("--port={port}"));
        for (option, file) in [("socket", "socket"), ("pid-file", "pid"), ("tmpdir", "")] {
            server.arg(format!("--{option}={}", run.join(file).display()));
        }
        server
            .args(SETTINGS)
            .args(settings.iter().map(|setting| format!("--{setting}")))
            .args(&user)
            .current_dir("/")
            .stdin(Stdio::null())
            .stdout(log.try_clone()?)
            .stderr(log);
        let mut started = Self { server: server.spawn()?, port, password, directory };
        started.wait_until_up().await?;
        Ok(started)
    }

    async fn wait_until_up(&mut self) -> Outcome<()> {
        let give_up = Instant::now() + Duration::from_secs(60);
        let root = MySqlConnectOptions::new().socket(self.directory.path().join("run/socket")).username("root");
        loop {
            match MySqlConnection::connect_with(&root).await {
                Ok(mut connection) => {
                    let made = format!("create user {USER}@localhost identified by '{}'", self.password);
                    connection.execute(AssertSqlSafe(made)).await?;
                    connection.execute("grant all on *.* to leasehold@localhost").await?;
                    return Ok(connection.close().await?);
                }
                Err(_) if Instant::now() < give_up && self.server.try_wait()?.is_none() => {
                    tokio::time::sleep(Duration::from_millis(50)).await;
                }
                Err(error) => {
                    let log = fs::read_to_string(self.directory.path().join("server.log"))?;
                    return Err(format!("mariadbd does not start: {error}\n{log}").into());
                }
            }
        }
    }

    /// Makes a database; answers the URL that a broker is given.
    pub(crate) async fn create_database(&self, name: &str) -> Outcome<String> {
        self.connect("").await?.execute(AssertSqlSafe(format!("create database {name}"))).await?;
        Ok(format!("mariadb://{USER}:{}@127.0.0.1:{}/{name}", self.password, self.port))
    }

    /// A connection of the measurement's own, at READ COMMITTED.
    pub(crate) async fn connect(&self, database: &str) -> Outcome<MySqlConnection> {
        let options = MySqlConnectOptions::new().host("127.0.0.1").port(self.port).username(USER);
        let options = options.password(&self.password);
        let options = if database.is_empty() { options } else { options.database(database) };
        let mut connection = MySqlConnection::connect_with(&options).await?;
        connection.execute("set session transaction isolation level read committed").await?;
        Ok(connection)
    }

    /// The server's version, for people.
    pub(crate) async fn version(&self) -> Outcome<String> {
        let row = self.connect("").await?.fetch_one("select version()").await?;
        Ok(format!("MariaDB {}", row.try_get::<String, _>(0)?))
    }
}

impl Drop for MariaDb {
    fn drop(&mut self) {
        end(&mut self.server, rustix::process::Signal::TERM, Duration::from_secs(30));
    }
}

/// Who runs the server where root starts it: the account that the package makes, if there is one.
fn owner() -> Outcome<Option<(String, u32, u32)>> {
    if !rustix::process::geteuid().is_root() {
        return Ok(None);
    }
    let users = fs::read_to_string("/etc/passwd")?;
    let of = |name: &str| users.lines().find(|line| line.starts_with(&format!("{name}:")));
    let user = of("mysql").or_else(|| of("nobody")).ok_or("root needs a user 'mysql' or 'nobody'")?;
    let fields: Vec<&str> = user.split(':').collect();
    match fields[..] {
        [name, _, uid, gid, ..] => Ok(Some((name.to_owned(), uid.parse()?, gid.parse()?))),
        _ => Err("the user has no ids".into()),
    }
}

/// `/usr/sbin`, where Debian puts the server, is not in everybody's path.
fn find(program: &str) -> Outcome<PathBuf> {
    let path = std::env::var("PATH").unwrap_or_default() + ":/usr/sbin:/usr/bin";
    let found = path.split(':').map(|place| Path::new(place).join(program)).find(|file| file.is_file());
    found.ok_or_else(|| format!("{program} is not installed").into())
}
