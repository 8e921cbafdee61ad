//! What every engine must do, run on each.
