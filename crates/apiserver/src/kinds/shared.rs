//! What several kinds have in common.

pub(crate) mod check;
pub(crate) mod classes;
pub(crate) mod conditions;
pub(crate) mod endpoint_address;
pub(crate) mod go;
pub(crate) mod json;
pub(crate) mod limits;
pub(crate) mod meta;
pub(crate) mod review;
pub(crate) mod volume;
pub(crate) mod workload;
