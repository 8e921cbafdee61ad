//! The MySQL engine as a whole, on MariaDB: which way its statements go, what they lock, and what happens under load.

mod load;
mod locks;
mod plans;
