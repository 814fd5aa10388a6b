//! Readers: text in somebody's format to a [`Description`](crate::Description).
