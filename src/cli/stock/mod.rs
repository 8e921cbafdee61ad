//! `leasehold stock`.

mod adjust;
mod end;
mod given;
mod reserve;
mod see;
mod switches;
mod verify;

use clap::Subcommand;

use self::{
    adjust::Adjust,
    end::{Commit, Extend, Release},
    reserve::{Find, Reserve},
    see::{Ledger, Show},
    switches::{Disable, Enable, Switches},
    verify::Verify,
};
use super::{Exit, broker::Failed};

#[derive(Debug, Subcommand)]
pub(super) enum StockCommand {
    /// Add to what is on hand, or take from it
    Adjust(Adjust),
    /// Show what is on hand, held and available of an item
    Show(Show),
    /// Hold units for a while: all lines, or none
    Reserve(Reserve),
    /// End a reservation: the units are sold
    Commit(Commit),
    /// End a reservation: the units are free again
    Release(Release),
    /// Keep a reservation for longer
    Extend(Extend),
    /// Show one reservation, by its id or its reference
    Find(Find),
    /// Show what changed a stock, the last changes first
    Ledger(Ledger),
    /// Compare all stocks with their ledger, their reservations and their pools
    Verify(Verify),
    /// Stop new reservations of items; what is held goes on
    Disable(Disable),
    /// Allow reservations of these items again
    Enable(Enable),
    /// List for which items reservations are stopped
    Switches(Switches),
}

impl StockCommand {
    pub(super) async fn run(self) -> Result<Exit, Failed> {
        match self {
            Self::Adjust(adjust) => adjust.run().await,
            Self::Show(show) => show.run().await,
            Self::Reserve(reserve) => reserve.run().await,
            Self::Commit(commit) => commit.run().await,
            Self::Release(release) => release.run().await,
            Self::Extend(extend) => extend.run().await,
            Self::Find(find) => find.run().await,
            Self::Ledger(ledger) => ledger.run().await,
            Self::Verify(verify) => verify.run().await,
            Self::Disable(disable) => disable.run().await,
            Self::Enable(enable) => enable.run().await,
            Self::Switches(switches) => switches.run().await,
        }
    }
}
