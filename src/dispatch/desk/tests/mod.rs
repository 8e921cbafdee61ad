mod conservation;
mod rules;
mod world;
