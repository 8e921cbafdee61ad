//! Options of all parts: defaults, file, environment, flags.
