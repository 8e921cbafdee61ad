//! `leasehold holds --database`: everybody's connections.

use crate::{
    cli::{
        broker::{Broker, Failed},
        exit,
        output::{Output, session},
    },
    v1::{ListDatabaseSessionsRequest, ListDatabaseSessionsResponse},
};

/// Asks the broker.
pub(super) async fn look(broker: &Broker) -> Result<ListDatabaseSessionsResponse, Failed> {
    let request = ListDatabaseSessionsRequest { totals_only: false };
    Ok(broker.connections().list_database_sessions(broker.call(request)).await?.into_inner())
}

/// Prints it; what could not be seen are notes.
pub(super) fn show(look: &ListDatabaseSessionsResponse, output: Output, before: &str) -> Result<(), Failed> {
    if output.json {
        return Output::object(&session::json(look));
    }
    Output::line(&format!("{before}{}\n", session::headline(look)))?;
    Output::table(&session::callers(look), "no connections are seen")?;
    let sessions = session::sessions(look);
    if !sessions.is_empty() {
        Output::line("")?;
        Output::table(&sessions, "")?;
    }
    for spot in &look.blind_spots {
        exit::note(spot);
    }
    Ok(())
}
