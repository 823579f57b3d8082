//! The differences between native programs and WebAssembly in a browser or a worker: clocks, timers, and the features of
//! `reqwest`.

#[cfg(not(all(target_arch = "wasm32", target_os = "unknown")))]
mod early_timer;
#[cfg(not(all(target_arch = "wasm32", target_os = "unknown")))]
mod native;
#[cfg(all(target_arch = "wasm32", target_os = "unknown"))]
mod web;

#[cfg(not(all(target_arch = "wasm32", target_os = "unknown")))]
pub(crate) use native::*;
#[cfg(all(target_arch = "wasm32", target_os = "unknown"))]
pub(crate) use web::*;
