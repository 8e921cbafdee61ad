//! `leasehold holds --vacuum`: who keeps dead rows from being removed.

use crate::{
    cli::{
        broker::{Broker, Failed},
        exit,
        output::{Output, escape, horizon},
    },
    v1::{GetVacuumHorizonRequest, GetVacuumHorizonResponse},
};

/// Asks the broker.
pub(super) async fn look(broker: &Broker) -> Result<GetVacuumHorizonResponse, Failed> {
    Ok(broker.connections().get_vacuum_horizon(broker.call(GetVacuumHorizonRequest {})).await?.into_inner())
}

/// Prints it; what could not be seen, and what to do about the oldest holder, are notes.
pub(super) fn show(look: &GetVacuumHorizonResponse, output: Output, before: &str) -> Result<(), Failed> {
    if output.json {
        return Output::object(&horizon::json(look));
    }
    if !before.is_empty() {
        Output::line(before)?;
    }
    Output::table(&horizon::holders(look), "nobody holds back the removal of dead rows")?;
    if !look.tables.is_empty() {
        Output::line("")?;
        Output::table(&horizon::tables(look), "")?;
    }
    if let Some(oldest) = look.holders.first().filter(|oldest| !oldest.catalogs_only) {
        exit::note(&format_args!("{}: {}", escape::text(&oldest.name), escape::text(&oldest.advice)));
    }
    for spot in &look.blind_spots {
        exit::note(spot);
    }
    Ok(())
}
