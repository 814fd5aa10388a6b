//! Writers: a [`Fabric`](crate::Fabric) to text in somebody's format.
