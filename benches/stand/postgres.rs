//! A `PostgreSQL` server of one's own, in a temporary directory, gone when the measurement ends.

use std::{
    fs::{self, File},
    net::TcpListener,
    os::unix::{fs::chown, process::CommandExt},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    time::{Duration, Instant},
};

use sqlx::{Connection, PgConnection, postgres::PgConnectOptions};
use tempfile::TempDir;

use super::Outcome;

const USER: &str = "leasehold";
/// How the measurement's own connections are told from the broker's.
const APPLICATION: &str = "measurement";

pub(crate) struct Postgres {
    server: Child,
    bindir: PathBuf,
    port: u16,
    password: String,
    directory: TempDir,
}

impl Postgres {
    /// Makes and starts a server with its default settings, fsync included, and `settings` over them.
    pub(crate) async fn start(bindir: Option<&Path>, settings: &[&str]) -> Outcome<Self> {
        let bindir = bindir.map_or_else(find, |given| Ok(given.to_owned()))?;
        let (directory, password) = (tempfile::tempdir()?, format!("{:032x}", rand::random::<u128>()));
        let owner = Owner::find()?;
        let (data, secret) = (directory.path().join("data"), directory.path().join("password"));
        fs::write(&secret, &password)?;
        owner.give(&[directory.path(), &secret])?;

        let mut initdb = owner.command(&bindir.join("initdb"));
        initdb.arg("-D").arg(&data).arg("--pwfile").arg(&secret);
        initdb.args(["-U", USER, "-A", "scram-sha-256", "-E", "UTF8", "--locale=C"]);
        let made = initdb.current_dir(directory.path()).output()?;
        if !made.status.success() {
            return Err(format!("initdb failed: {}", String::from_utf8_lossy(&made.stderr)).into());
        }

        let port = free_port()?;
        let log = File::create(directory.path().join("server.log"))?;
        let mut server = owner.command(&bindir.join("postgres"));
        server.arg("-D").arg(&data).arg("-p").arg(port.to_string()).arg("-k").arg(directory.path());
        server.args(["-h", "127.0.0.1", "-c", "log_line_prefix=%p %a|"]);
        for setting in settings {
            server.args(["-c", setting]);
        }
        let server = server.current_dir(directory.path()).stdout(Stdio::null()).stderr(log).spawn()?;
        let started = Self { server, bindir, port, password, directory };
        started.wait_until_up().await?;
        Ok(started)
    }

    async fn wait_until_up(&self) -> Outcome<()> {
        let give_up = Instant::now() + Duration::from_secs(30);
        loop {
            match self.connect("postgres").await {
                Ok(connection) => return Ok(connection.close().await?),
                Err(error) if Instant::now() > give_up => return Err(error),
                Err(_) => tokio::time::sleep(Duration::from_millis(50)).await,
            }
        }
    }

    /// Makes a database; answers the URL that a broker is given.
    pub(crate) fn create_database(&self, name: &str) -> Outcome<String> {
        let port = self.port.to_string();
        let mut createdb = Command::new(self.bindir.join("createdb"));
        createdb.args(["-h", "127.0.0.1", "-p", &port, "-U", USER, name]).env("PGPASSWORD", &self.password);
        let made = createdb.output()?;
        if made.status.success() {
            Ok(format!("postgres://{USER}:{}@127.0.0.1:{port}/{name}", self.password))
        } else {
            Err(format!("createdb failed: {}", String::from_utf8_lossy(&made.stderr)).into())
        }
    }

    /// A connection of the measurement's own.
    pub(crate) async fn connect(&self, database: &str) -> Outcome<PgConnection> {
        let options = PgConnectOptions::new_without_pgpass()
            .host("127.0.0.1")
            .port(self.port)
            .username(USER)
            .password(&self.password)
            .database(database)
            .application_name(APPLICATION);
        Ok(PgConnection::connect_with(&options).await?)
    }

    /// Fills 3 GB of write-ahead log and has a checkpoint set its files aside for use again, as they are on a server that has
    /// run for a while: a new server makes each of its files by writing zeros, and whoever commits waits for it.
    ///
    /// Needs a `min_wal_size` of 4 GB, or the files are removed instead.
    pub(crate) async fn age_log(&self) -> Outcome<()> {
        let mut connection = self.connect("postgres").await?;
        let fill =
            "select count(pg_logical_emit_message(false, 'age', repeat('x', 1000000))) from generate_series(1, 3000)";
        sqlx::query(fill).execute(&mut connection).await?;
        self.checkpoint().await
    }

    /// Has the server write down now what it would have written in the middle of a measurement.
    pub(crate) async fn checkpoint(&self) -> Outcome<()> {
        sqlx::query("checkpoint").execute(&mut self.connect("postgres").await?).await?;
        Ok(())
    }

    /// What the server has logged so far, the measurement's own lines left out.
    pub(crate) fn log(&self) -> Outcome<Vec<String>> {
        let log = fs::read(self.directory.path().join("server.log"))?;
        let own = format!(" {APPLICATION}|");
        let lines =
            String::from_utf8_lossy(&log).lines().filter(|line| !line.contains(&own)).map(str::to_owned).collect();
        Ok(lines)
    }

    /// Client connections to a database, the measurement's own left out.
    pub(crate) async fn connections(&self, database: &str) -> Outcome<i64> {
        let mut connection = self.connect("postgres").await?;
        let count = sqlx::query_scalar(
            "select count(*) from pg_stat_activity
             where datname = $1 and backend_type = 'client backend' and application_name <> $2",
        );
        Ok(count.bind(database).bind(APPLICATION).fetch_one(&mut connection).await?)
    }

    /// Process id of the postmaster.
    pub(crate) fn pid(&self) -> u32 {
        self.server.id()
    }

    /// The server's version, for people.
    pub(crate) async fn version(&self) -> Outcome<String> {
        let mut connection = self.connect("postgres").await?;
        let version: String = sqlx::query_scalar("show server_version").fetch_one(&mut connection).await?;
        Ok(format!("PostgreSQL {version}"))
    }
}

impl Drop for Postgres {
    fn drop(&mut self) {
        super::broker::end(&mut self.server, rustix::process::Signal::INT, Duration::from_secs(20));
    }
}

/// Who runs the server: it refuses root, so root hands over to the user that Debian's package makes.
struct Owner(Option<(u32, u32)>);

impl Owner {
    fn find() -> Outcome<Self> {
        if !rustix::process::geteuid().is_root() {
            return Ok(Self(None));
        }
        let users = fs::read_to_string("/etc/passwd")?;
        let user = users.lines().find(|line| line.starts_with("postgres:")).ok_or("root needs a user 'postgres'")?;
        let fields: Vec<&str> = user.split(':').collect();
        match fields[..] {
            [_, _, uid, gid, ..] => Ok(Self(Some((uid.parse()?, gid.parse()?)))),
            _ => Err("the user 'postgres' has no ids".into()),
        }
    }

    fn give(&self, paths: &[&Path]) -> Outcome<()> {
        let Some((uid, gid)) = self.0 else { return Ok(()) };
        Ok(paths.iter().try_for_each(|path| chown(path, Some(uid), Some(gid)))?)
    }

    fn command(&self, program: &Path) -> Command {
        let mut command = Command::new(program);
        if let Some((uid, gid)) = self.0 {
            command.uid(uid).gid(gid);
        }
        command
    }
}

fn find() -> Outcome<PathBuf> {
    let mut places = Vec::new();
    if let Ok(told) = Command::new("pg_config").arg("--bindir").output() {
        places.push(PathBuf::from(String::from_utf8_lossy(&told.stdout).trim()));
    }
    if let Ok(versions) = fs::read_dir("/usr/lib/postgresql") {
        places.extend(versions.flatten().map(|version| version.path().join("bin")));
    }
    let found = places.into_iter().find(|place| place.join("initdb").is_file());
    found.ok_or_else(|| "no PostgreSQL server programs found: say where with -- --bindir DIR".into())
}

/// A port that was free a moment ago.
pub(crate) fn free_port() -> Outcome<u16> {
    Ok(TcpListener::bind(("127.0.0.1", 0))?.local_addr()?.port())
}
