//! Table tests of the pure functions, over the cases that upstream documents in its own.

mod answers;
mod calculator;
mod conditions;
mod scaling;
