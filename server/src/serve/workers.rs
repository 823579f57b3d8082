//! The background workers of a server.

use std::sync::Arc;

use futures_util::future::BoxFuture;

use crate::{
    delivery::{Dispatcher, DueRetries, FanOut},
    metrics::Metrics,
    service::Service,
};

/// The workers of the lasting service. They run until they are cancelled.
pub fn of(service: &Arc<Service>, dispatcher: &Arc<Dispatcher>, metrics: &Metrics) -> [BoxFuture<'static, ()>; 12] {
    let [expiry, payouts, request_log, held_up, dispatching, fan_out, retries] =
        of_sandbox(service, dispatcher, metrics);
    [
        expiry,
        payouts,
        Box::pin(Arc::clone(service).prune()),
        Box::pin(Arc::clone(service).keep_coverage()),
        Box::pin(Arc::clone(service).store_key_uses()),
        request_log,
        Box::pin(Arc::clone(service).reconcile()),
        Box::pin(Arc::clone(service).follow_gateway_lists()),
        held_up,
        dispatching,
        fan_out,
        retries,
    ]
}

/// The workers of a sandbox's service. It calls no gateway, its keys are in the lasting store, and its records are dropped
/// with their store.
pub fn of_sandbox(
    service: &Arc<Service>,
    dispatcher: &Arc<Dispatcher>,
    metrics: &Metrics,
) -> [BoxFuture<'static, ()>; 7] {
    let (store, ambient) = (Arc::clone(&service.store), Arc::clone(&service.ambient));
    let fan_out = FanOut {
        store: Arc::clone(&store),
        ambient: Arc::clone(&ambient),
        dispatcher: Arc::clone(dispatcher),
        signal: Arc::clone(&service.fan_out),
        times: metrics.fan_out.clone(),
    };
    let retries = DueRetries { store, ambient, dispatcher: Arc::clone(dispatcher) };
    [
        Box::pin(Arc::clone(service).expire_sessions()),
        Box::pin(Arc::clone(service).move_payouts()),
        Box::pin(Arc::clone(service).store_request_log()),
        Box::pin(Arc::clone(service).plan_held_up_work()),
        Box::pin(Arc::clone(dispatcher).run()),
        Box::pin(fan_out.run()),
        Box::pin(retries.run()),
    ]
}
