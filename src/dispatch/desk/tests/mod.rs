mod claiming;
mod conservation;
mod credit;
mod database;
mod ending;
mod finding;
mod returning;
mod world;
