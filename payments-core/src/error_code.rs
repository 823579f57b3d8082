//! The codes of the API's errors: one table with each code's status, word and meaning.

use crate::open_enum::open_enum;

/// Defines [`ErrorCode`]. A variant's doc comment is also what [`ErrorCode::meaning`] returns.
macro_rules! error_codes {
    ( $( $status:literal { $( $(#[doc = $line:literal])+ $variant:ident = $word:literal, )+ } )+ ) => {
        open_enum! {
            /// What an API error is about, as a stable word such as `payment_not_found`.
            ///
            /// Programs decide by the code; [`Message`](crate::Message) is for people and may change. Each code has one HTTP
            /// status. A code of a later API version is kept as `Other`, so always have a branch for the rest:
            ///
            /// ```
            /// use payments_core::ErrorCode;
            ///
            /// fn advice(code: &ErrorCode) -> &'static str {
            ///     match code {
            ///         ErrorCode::PaymentAlreadyRefunded => "the customer has the money",
            ///         ErrorCode::RateLimited => "wait",
            ///         _ => "show the message to a person",
            ///     }
            /// }
            /// assert_eq!(advice(&"payment_already_refunded".into()), "the customer has the money");
            /// assert_eq!(advice(&"some_later_code".into()), "show the message to a person");
            /// ```
            pub enum ErrorCode {
                $( $( $(#[doc = $line])+ $variant = $word, )+ )+
            }
        }

        impl ErrorCode {
            /// The HTTP status of errors with this code, or `None` if this version does not know the code. The codes of
            /// single fields have the status of their error, 400.
            #[must_use]
            pub const fn status(&self) -> Option<u16> {
                match self {
                    $( $( Self::$variant )|+ => Some($status), )+
                    Self::Other(_) => None,
                }
            }

            /// When the error comes and what to do, in plain text. Empty if this version does not know the code.
            #[must_use]
            pub const fn meaning(&self) -> &'static str {
                match self {
                    $( $( Self::$variant => concat!($($line),+).trim_ascii(), )+ )+
                    Self::Other(_) => "",
                }
            }
        }
    };
}

error_codes! {
    400 {
        /// Several parts of the request are wrong, in different ways. Correct each of `fields`. If only one thing is wrong, the
        /// error has that thing's code instead.
        ValidationFailed = "validation_failed",
        /// The body is not one JSON object in UTF-8. The message has the line and column. Correct the program that writes it.
        JsonInvalid = "json_invalid",
        /// The connection ended before the whole body arrived. Send the request again.
        BodyIncomplete = "body_incomplete",
        /// The request has a body and its `Content-Type` is not `application/json`, or it has a `Content-Encoding`. Send that
        /// header, and the body as it is.
        ContentTypeInvalid = "content_type_invalid",
        /// `Idempotency-Key` is not 1 to 255 visible ASCII characters, or was sent twice. Send one short key, such as an order
        /// number.
        IdempotencyKeyInvalid = "idempotency_key_invalid",
        /// A refund of a part was sent without `Idempotency-Key`. Send one, such as the number of the returned item.
        IdempotencyKeyRequired = "idempotency_key_required",
        /// The signature of a gateway's event is not genuine. Check the signing secret that the operator gave the server.
        SignatureInvalid = "signature_invalid",
        /// The request has a webhook's delivery header, so an endpoint's URL probably leads to this server. Set the URL to your
        /// own program. Do not copy a webhook's headers to your requests.
        WebhookLoop = "webhook_loop",
        /// A required field is missing or `null`. Send it.
        FieldMissing = "field_missing",
        /// A field or a query parameter has the wrong type or an invalid value. The message says which values are valid.
        FieldInvalid = "field_invalid",
        /// A text or a list is too long. Shorten it; the message has the limit.
        FieldTooLong = "field_too_long",
        /// No field or query parameter has this name. The message suggests a name or lists the known ones. Correct the name.
        FieldUnknown = "field_unknown",
        /// The body has a field twice, or the query a parameter. Send it once.
        FieldRepeated = "field_repeated",
        /// Two names of one field have different values, such as `customerName` and `customer.name`. Send one of them.
        FieldsDisagree = "fields_disagree",
        /// An amount is not a positive JSON number with at most two decimals, or the gateway of its currency does not take it.
        /// Round it before you send it; the message has the limits.
        AmountInvalid = "amount_invalid",
        /// The currency is not one of the API's. Use `BDT` or `USD`.
        CurrencyInvalid = "currency_invalid",
        /// Metadata is longer than 16 KiB of JSON, or nested too deeply. Keep the data yourself and send a reference to it.
        MetadataTooLarge = "metadata_too_large",
        /// A phone number is not a Bangladeshi mobile number. Ask the customer again.
        PhoneNumberInvalid = "phone_number_invalid",
        /// The payment method is unknown, or not the one for the payment's currency. Leave it out to use the right one.
        PaymentMethodInvalid = "payment_method_invalid",
        /// A URL is not absolute, or begins neither with `http://` nor with `https://`. Correct it.
        UrlInvalid = "url_invalid",
        /// The URL must begin with `https://`. A live payment's redirect may begin with `http://` only if it leads to localhost.
        UrlNotHttps = "url_not_https",
        /// The server does not use this URL. An endpoint's URL must lead to a public address, not to this server, and must have
        /// no user name or password. A redirect must lead to the site of the payment's own URLs.
        UrlNotAllowed = "url_not_allowed",
    }
    401 {
        /// The API key is missing, malformed, unknown or revoked. Check the key that your program sends.
        Unauthorized = "unauthorized",
        /// The API key has expired. Ask the server's operator for a new one.
        ApiKeyExpired = "api_key_expired",
    }
    403 {
        /// The API key is restricted and may not do this. The message names the scope that it lacks. Use another key.
        PermissionMissing = "permission_missing",
        /// Only a test payment can be simulated, and this one is live. Pay it at the gateway.
        SimulationNotAllowed = "simulation_not_allowed",
        /// This key cannot advance the time of a sandbox or empty it: it is a live key, or the public key, which others use too.
        /// Use a test key of your own.
        OwnSandboxRequired = "own_sandbox_required",
        /// A person's role refunds only up to a cap of the operator, and with this refund the payment's refunds would be above it.
        /// Ask a colleague whose role has no cap.
        RefundCapExceeded = "refund_cap_exceeded",
        /// A request with a browser's session did not come from this server's own pages. Only they may use the session; a program
        /// needs an API key.
        CrossSiteRequest = "cross_site_request",
    }
    404 {
        /// No route has this path. Check the base URL; API paths start with `/api/v1`.
        RouteNotFound = "route_not_found",
        /// No payment of this developer and environment has this id. Check the id, and whether the key is a test or a live key.
        PaymentNotFound = "payment_not_found",
        /// No payout of this developer and environment has this id. Check the id, and whether the key is a test or a live key.
        PayoutNotFound = "payout_not_found",
        /// This server makes no payouts. Ask its operator.
        PayoutsNotConfigured = "payouts_not_configured",
        /// No webhook endpoint of this developer and environment has this id. It may have been removed; list the endpoints.
        WebhookEndpointNotFound = "webhook_endpoint_not_found",
        /// No webhook delivery of this developer and environment has this id. List the deliveries.
        DeliveryNotFound = "delivery_not_found",
        /// No event of this key's developer and environment has this id. Test events are in no list.
        EventNotFound = "event_not_found",
        /// No event of this key's developer and environment has the id in `after`. Check that the key is the one with which you
        /// read before. If the sandbox was emptied, read on without `after`.
        CursorUnknown = "cursor_unknown",
        /// No app of this developer has this id. List the apps.
        AppNotFound = "app_not_found",
        /// The workspace of the API key is gone. Ask the server's operator.
        WorkspaceNotFound = "workspace_not_found",
        /// The sandbox is off, or its key was revoked. Use your own test key, or ask the server's operator.
        SandboxNotAvailable = "sandbox_not_available",
        /// This server has no card processor. Only card processors see this code.
        GatewayNotConfigured = "gateway_not_configured",
    }
    405 {
        /// The path does not have this method. The header `Allow` has its methods.
        MethodNotAllowed = "method_not_allowed",
    }
    408 {
        /// The body did not arrive within 10 seconds. Send the request again.
        RequestTimeout = "request_timeout",
    }
    409 {
        /// Only a live payment that is paid can be refunded. Retrieve the payment; if it is open, refund it once it is paid.
        PaymentNotRefundable = "payment_not_refundable",
        /// The payment is refunded already, and nothing was refunded again. Treat it as done.
        PaymentAlreadyRefunded = "payment_already_refunded",
        /// A dispute is open, or took the money, and nothing else is left of the payment to refund. Answer the dispute. If it is
        /// won, the money can be refunded again.
        PaymentDisputed = "payment_disputed",
        /// Less is left of the payment than the refund's amount. The message has what is left. Refund at most that, or leave the
        /// amount out.
        RefundAmountTooLarge = "refund_amount_too_large",
        /// The payment has 99 refunds of parts. Leave the amount out to refund all that is left. After 100 refunds no more are
        /// possible.
        RefundLimitReached = "refund_limit_reached",
        /// A refund of this payment is in progress, and the server finishes it. Retrieve the payment in a moment.
        RefundInProgress = "refund_in_progress",
        /// The merchant's balance and its overdraft limit do not cover this refund. Wait for payments, or ask the operator.
        RefundOverdrawsBalance = "refund_overdraws_balance",
        /// The payment is not open any more: it is paid, failed, cancelled or refunded, or waits for its gateway. Retrieve it.
        PaymentNotPayable = "payment_not_payable",
        /// The checkout session has expired, so the payment cannot be paid. Create a new payment.
        CheckoutExpired = "checkout_expired",
        /// Another payment has this `merchantTransactionId`, and the request says that it must be unique. List the payments with
        /// it to find the first.
        MerchantTransactionIdUsed = "merchant_transaction_id_used",
        /// Less is available for a payout than its amount. The message has what is available. Ask for at most that, or leave the
        /// amount out.
        PayoutNotAvailable = "payout_not_available",
        /// No account or wallet is set for payouts in this currency. Set one first.
        PayoutDestinationMissing = "payout_destination_missing",
        /// Another payout in this currency is not finished. Wait for it, or cancel it.
        PayoutInProgress = "payout_in_progress",
        /// The payout's status does not allow this, or whoever asks may not do it. Retrieve the payout.
        PayoutNotAllowed = "payout_not_allowed",
        /// The amount is above what the merchant's workspace takes a payment. Ask for less, or have the server's operator raise
        /// the limit. `GET /account` shows it.
        PaymentLimitExceeded = "payment_limit_exceeded",
        /// With this amount, the payments of the day in Dhaka would exceed what the merchant's workspace takes. The message has
        /// what is left. Wait for tomorrow, or have the server's operator raise the limit.
        DayLimitExceeded = "day_limit_exceeded",
        /// The merchant's workspace has as many working API keys as its operator allows. Revoke one first. Only the operator's
        /// commands create keys.
        ApiKeyLimitReached = "api_key_limit_reached",
        /// The developer has as many webhook endpoints as the server allows. Remove one first.
        WebhookEndpointLimitReached = "webhook_endpoint_limit_reached",
        /// The delivery cannot be sent again: it is still pending, its endpoint was removed or is not active, or its payload
        /// has been deleted. The message says which.
        DeliveryNotResendable = "delivery_not_resendable",
        /// Other requests changed the same record again and again, and nothing was done. Send the request again.
        ConcurrentChange = "concurrent_change",
    }
    413 {
        /// The body is larger than 64 KiB. Send less. A card processor's events may have 1 MiB.
        BodyTooLarge = "body_too_large",
    }
    414 {
        /// The path and query are longer than 8 KiB. Shorten them.
        UriTooLong = "uri_too_long",
    }
    421 {
        /// The server listens on loopback alone, and the request's `Host` is neither loopback nor the base URL's. Use the base
        /// URL, or have the server's operator name the host with `--allowed-host`.
        HostUnknown = "host_unknown",
    }
    422 {
        /// The `Idempotency-Key` was used with another request. Repeat that request exactly, or use a new key for this one.
        IdempotencyKeyReused = "idempotency_key_reused",
        /// This server has no gateway for live payments in this currency. Use another currency, or ask the server's operator.
        CurrencyNotAvailable = "currency_not_available",
        /// The gateway declined, and the message has its reason. Do not retry without a change.
        GatewayRefused = "gateway_refused",
    }
    429 {
        /// The minute's requests are used up. Wait for as many seconds as `Retry-After` says.
        RateLimited = "rate_limited",
        /// The merchant's workspace has created as many payments within a minute as its operator allows. Wait for as many seconds
        /// as `Retry-After` says.
        PaymentRateExceeded = "payment_rate_exceeded",
    }
    431 {
        /// The request line and headers are longer than 16 KiB, or there are more than 64 headers. Send fewer or shorter ones.
        HeadersTooLarge = "headers_too_large",
    }
    500 {
        /// The server has a fault. Give the `X-Request-Id` to its operator, whose log has the cause.
        InternalError = "internal_error",
    }
    503 {
        /// The gateway does not answer. Retry in a moment with the same Idempotency-Key. The server finishes a refund by
        /// itself.
        GatewayUnavailable = "gateway_unavailable",
        /// An earlier request with this `Idempotency-Key` is still in progress. Retry in a moment with the same key.
        IdempotencyKeyInProgress = "idempotency_key_in_progress",
        /// You have as much in progress as the server allows: test pings, refunds, webhooks to send again, long requests, or long
        /// responses that you still have to read. Nothing was done. Read what is open, and retry in a moment.
        TooManyInProgress = "too_many_in_progress",
        /// The server lost its database while it saved the request, so it may be saved or not. Retry with the same
        /// Idempotency-Key.
        OutcomeUnknown = "outcome_unknown",
        /// The server cannot reach its store, or is shutting down. Retry in a moment, with the same Idempotency-Key.
        ServiceUnavailable = "service_unavailable",
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn every_code_has_a_word_of_its_own_a_status_and_a_meaning() {
        let words: BTreeSet<&str> = ErrorCode::KNOWN.iter().map(ErrorCode::as_str).collect();
        assert_eq!(words.len(), ErrorCode::KNOWN.len());
        for code in ErrorCode::KNOWN {
            assert!(code.as_str().bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'_'), "{code}");
            assert!(code.status().is_some_and(|status| (400..600).contains(&status)), "{code}");
            assert!(code.meaning().ends_with('.') && !code.meaning().contains("  "), "{code}: {}", code.meaning());
        }
    }

    #[test]
    fn an_unknown_code_is_kept() {
        let code: ErrorCode = serde_json::from_str("\"some_later_code\"").unwrap();
        assert_eq!((code.as_str(), code.status(), code.meaning()), ("some_later_code", None, ""));
        assert_eq!(serde_json::to_string(&code).unwrap(), "\"some_later_code\"");
        assert_eq!(ErrorCode::from("rate_limited"), ErrorCode::RateLimited);
    }
}
