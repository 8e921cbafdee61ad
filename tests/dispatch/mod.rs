//! Dispatcher and upkeep on real databases, through the store: what the rules of the desk are worth together with
//! real claims, real time and real streams.

mod broker;
mod ends;
mod flow;
mod idle;
mod maintenance;
mod outage;
mod replicas;
mod returns;
mod schemas;
mod views;
