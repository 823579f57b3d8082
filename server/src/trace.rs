//! OpenTelemetry traces: a request, its commit, its gateway calls, and the deliveries of its event.
//!
//! The feature `otlp` sends them to the collector that `OTEL_EXPORTER_OTLP_ENDPOINT` names. Without the feature each function
//! returns what it got, so that nothing is left of it in the binary. Spans are made here and not with `tracing`, whose
//! subscriber would format and store a span for each request, sampled or not.

#[cfg(feature = "otlp")]
mod events;
#[cfg(not(feature = "otlp"))]
mod off;
#[cfg(feature = "otlp")]
mod otlp;

#[cfg(not(feature = "otlp"))]
pub use off::*;
#[cfg(feature = "otlp")]
pub use otlp::*;
