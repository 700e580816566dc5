//! Requests to the embedded API server: bodies of any kind, decoded, defaulted, patched, applied and validated. All are dry
//! runs, so that one request does not change what the next one meets. The server must answer, and never with an error
//! of its own.

#![no_main]

#[path = "request/world.rs"]
mod world;

use std::cell::OnceCell;

use libfuzzer_sys::fuzz_target;

thread_local! {
    static WORLD: OnceCell<world::World> = const { OnceCell::new() };
}

fuzz_target!(|data: &[u8]| WORLD.with(|world| world.get_or_init(world::World::new).check(data)));
