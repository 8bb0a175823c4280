//! How pages reach the network: connections, TLS and basic authentication, bounded in every way.

pub(crate) mod auth;
pub(crate) mod config;
pub(crate) mod connections;
pub(crate) mod live;
