//! Streams' credit becomes claims, claims become frames.
