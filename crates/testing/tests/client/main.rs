//! What the client of a manager, its helpers and the REST mapper promise, on the embedded server under a virtual clock.

mod helpers;
mod mapper;
mod reads;
mod support;
mod writes;
