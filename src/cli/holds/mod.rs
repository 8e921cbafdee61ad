//! `leasehold holds`: who holds the lanes, and everybody's connections.

mod database;
mod vacuum;

use std::{io::IsTerminal as _, time::Duration};

use clap::{Args, ValueEnum};
use tokio::time::MissedTickBehavior;
use tokio_stream::StreamExt as _;

use super::{
    Exit,
    broker::{Broker, Failed, Target},
    output::{Output, caller},
    signals::Signals,
};
use crate::v1::{CallerSnapshot, CallerWindow, ListCallersRequest, WatchCallersRequest};

/// Moves to the upper left corner; what was below is written over, and the rest of the screen is cleared afterwards.
const HOME: &str = "\u{1b}[H\u{1b}[J";

/// Between two looks of `--watch`.
const EVERY: Duration = Duration::from_secs(1);

/// `leasehold holds`.
#[derive(Debug, Args)]
pub(super) struct Holds {
    /// Which time the figures are about
    #[arg(long, value_name = "WINDOW", value_enum, default_value_t = Window::OneMinute)]
    window: Window,
    /// One row for each caller, or for each kind of statement of each caller
    #[arg(long, value_name = "WHAT", value_enum, default_value_t = By::Caller)]
    by: By,
    /// Everybody's connections of the database, not this broker's lanes alone
    #[arg(long, conflicts_with_all = ["window", "by"])]
    database: bool,
    /// Who keeps the database from removing dead rows
    #[arg(long, conflicts_with_all = ["window", "by", "database"])]
    vacuum: bool,
    /// Show it anew every second, until Ctrl-C
    #[arg(long)]
    watch: bool,
    #[command(flatten)]
    output: Output,
    #[command(flatten)]
    target: Target,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Window {
    /// The last 10 seconds
    #[value(name = "10s")]
    TenSeconds,
    /// The last minute
    #[value(name = "1m")]
    OneMinute,
    /// The last 10 minutes
    #[value(name = "10m")]
    TenMinutes,
    /// The last hour
    #[value(name = "1h")]
    OneHour,
    /// All since the broker started
    Start,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum By {
    /// Business processes
    Caller,
    /// Their kinds of statements
    Statement,
}

impl From<Window> for CallerWindow {
    fn from(window: Window) -> Self {
        match window {
            Window::TenSeconds => Self::TenSeconds,
            Window::OneMinute => Self::OneMinute,
            Window::TenMinutes => Self::TenMinutes,
            Window::OneHour => Self::OneHour,
            Window::Start => Self::SinceStart,
        }
    }
}

impl Holds {
    pub(super) async fn run(self) -> Result<Exit, Failed> {
        let broker = self.target.connect().await?;
        match (self.database || self.vacuum, self.watch) {
            (true, true) => self.look_on(&broker).await,
            (true, false) => self.look(&broker).await.map(|()| Exit::Ok),
            (false, true) => self.watch(&broker).await,
            (false, false) => self.once(&broker).await,
        }
    }

    /// What this broker sees of the database.
    async fn look(&self, broker: &Broker) -> Result<(), Failed> {
        if self.vacuum {
            vacuum::show(&vacuum::look(broker).await?, self.output, self.corner())
        } else {
            database::show(&database::look(broker).await?, self.output, self.corner())
        }
    }

    async fn look_on(&self, broker: &Broker) -> Result<Exit, Failed> {
        let mut signals = Signals::listen()?;
        let mut seconds = tokio::time::interval(EVERY);
        seconds.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                _ = seconds.tick() => self.look(broker).await?,
                _ = signals.next() => return Ok(Exit::Ok),
            }
        }
    }

    /// What comes before a screen that is shown anew.
    fn corner(&self) -> &'static str {
        if self.watch && std::io::stdout().is_terminal() { HOME } else { "" }
    }

    async fn once(&self, broker: &Broker) -> Result<Exit, Failed> {
        let include_statements = self.by == By::Statement;
        let request = ListCallersRequest { window: CallerWindow::from(self.window).into(), include_statements };
        let answer = broker.connections().list_callers(broker.call(request)).await?.into_inner();
        self.show(&answer.snapshot.unwrap_or_default())?;
        Ok(Exit::Ok)
    }

    async fn watch(&self, broker: &Broker) -> Result<Exit, Failed> {
        let mut signals = Signals::listen()?;
        let include_statements = self.by == By::Statement;
        let request = WatchCallersRequest { window: CallerWindow::from(self.window).into(), include_statements };
        let mut snapshots = broker.connections().watch_callers(broker.stream(request)).await?.into_inner();
        loop {
            let next = tokio::select! {
                next = snapshots.next() => next,
                _ = signals.next() => return Ok(Exit::Ok),
            };
            match next {
                Some(snapshot) => self.show(&snapshot?.snapshot.unwrap_or_default())?,
                None => return Err(Failed::new(Exit::Unavailable, "the broker is going away and ended the stream")),
            }
        }
    }

    fn show(&self, snapshot: &CallerSnapshot) -> Result<(), Failed> {
        if self.output.json {
            return Output::object(&caller::json(snapshot));
        }
        let table = match self.by {
            By::Caller => caller::table(snapshot),
            By::Statement => caller::by_statement(snapshot),
        };
        let head = caller::headline(snapshot);
        Output::line(&format!("{}{head}\n", self.corner()))?;
        Output::table(&table, "")
    }
}
