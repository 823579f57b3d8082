//! Adds the request to each line that is logged while the request is handled.
//!
//! A span of `tracing` would do the same, but it is formatted and stored for every request, and few requests log a line.

use std::{
    borrow::Cow,
    fmt::{self, Write as _},
    sync::Arc,
};

use tokio::task_local;
use tracing::{Event, Subscriber};
use tracing_subscriber::{
    fmt::{
        FmtContext,
        format::{FormatEvent, FormatFields, Writer},
    },
    registry::LookupSpan,
};

use super::head::{Described, Head};
use crate::log::terminal;

task_local! {
    /// The request that this task handles.
    pub(super) static REQUEST: Arc<Head>;
}

/// Formats a line and adds the request of the task that writes it.
pub struct WithRequest<F> {
    format: F,
    is_json: bool,
}

impl<F> WithRequest<F> {
    /// Adds `request{id=… method=… path=…}` to a line of text.
    pub fn text(format: F) -> Self {
        Self { format, is_json: false }
    }

    /// Adds the member `request` to a line that is a JSON object.
    pub fn json(format: F) -> Self {
        Self { format, is_json: true }
    }

    /// Escapes control characters. In text it leaves the formatter's own colours: the formatter escapes all other colour
    /// codes.
    fn keep_to_a_line(&self, line: &mut String) {
        line.truncate(line.trim_end_matches('\n').len());
        let shown = match self.is_json {
            true => terminal::visible_json(line),
            false => terminal::visible_with_colours(line),
        };
        if let Cow::Owned(shown) = shown {
            *line = shown;
        }
        line.push('\n');
    }

    fn add(&self, line: &mut String, head: &Head) -> fmt::Result {
        let end = line.trim_end();
        if self.is_json {
            line.truncate(end.strip_suffix('}').unwrap_or(end).len());
            let request = serde_json::to_string(&head.described()).map_err(|_| fmt::Error)?;
            return writeln!(line, r#","request":{request}}}"#);
        }
        line.truncate(end.len());
        let Described { id, method, path } = head.described();
        writeln!(line, " request{{id={id} method={method} path={path:?}}}")
    }
}

impl<S, N, F> FormatEvent<S, N> for WithRequest<F>
where
    S: Subscriber + for<'l> LookupSpan<'l>,
    N: for<'w> FormatFields<'w> + 'static,
    F: FormatEvent<S, N>,
{
    fn format_event(&self, context: &FmtContext<'_, S, N>, mut out: Writer<'_>, event: &Event<'_>) -> fmt::Result {
        let mut line = String::new();
        self.format.format_event(context, Writer::new(&mut line), event)?;
        self.keep_to_a_line(&mut line);
        // Outside a request there is nothing to add.
        REQUEST.try_with(|head| self.add(&mut line, head)).unwrap_or(Ok(()))?;
        out.write_str(&line)
    }
}

#[cfg(test)]
mod tests {
    use std::{io, net::Ipv4Addr, sync::OnceLock};

    use parking_lot::Mutex;
    use serde_json::{Value, json};
    use tracing::{info, subscriber::with_default};
    use tracing_subscriber::fmt::{
        SubscriberBuilder,
        format::{JsonFields, format},
    };
    use warp::http::{HeaderValue, Request};

    use super::*;
    use crate::http::head::Addresses;

    #[derive(Clone, Default)]
    struct Lines(Arc<Mutex<Vec<u8>>>);

    impl io::Write for Lines {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().extend(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    /// Logs one line while a request is handled, and one outside.
    fn log() {
        let (parts, ()) = Request::post("/api/v1/payments?a=1").body(()).unwrap().into_parts();
        let client = Ipv4Addr::LOCALHOST.into();
        let addresses = Addresses { peer: client, client };
        let id = HeaderValue::from_static("req_1");
        let (verdict, body) = (OnceLock::new(), Mutex::new(None));
        let head = Head { id, parts, addresses, found: None, verdict, body };
        REQUEST.sync_scope(Arc::new(head), || info!(number = 7, "a {}", "{\"brace\": {}}"));
        info!("outside");
    }

    fn lines(lines: &Lines) -> Vec<String> {
        let text = String::from_utf8(lines.0.lock().clone()).unwrap();
        text.lines().map(str::to_owned).collect()
    }

    #[test]
    fn a_line_of_text_ends_with_its_request() {
        let (out, builder) = (Lines::default(), SubscriberBuilder::default());
        let writer = out.clone();
        let builder = builder.event_format(WithRequest::text(format().with_ansi(false)));
        with_default(builder.with_writer(move || writer.clone()).finish(), log);
        let lines = lines(&out);
        let end = r#": a {"brace": {}} number=7 request{id=req_1 method=POST path="/api/v1/payments"}"#;
        assert!(lines[0].ends_with(end), "{lines:?}");
        assert!(lines[1].ends_with(": outside") && lines.len() == 2, "{lines:?}");
    }

    #[test]
    fn a_line_has_only_the_beginning_of_a_long_method_and_path() {
        for is_json in [false, true] {
            let request = Request::builder().method(&*"A".repeat(900)).uri(format!("/{}", "é".repeat(900)));
            let (parts, ()) = request.body(()).unwrap().into_parts();
            let client = Ipv4Addr::LOCALHOST.into();
            let (verdict, body, id) = (OnceLock::new(), Mutex::new(None), HeaderValue::from_static("req_1"));
            let addresses = Addresses { peer: client, client };
            let head = Head { id, parts, addresses, found: None, verdict, body };
            let mut line = "{}\n".to_owned();
            WithRequest { format: (), is_json }.add(&mut line, &head).unwrap();
            assert!(line.contains(&"é".repeat(159)) && line.len() < 500, "{line}");
            assert!(line.contains(&"A".repeat(16)) && !line.contains(&"A".repeat(17)), "{line}");
        }
    }

    #[test]
    fn text_from_outside_stays_in_its_line() {
        let hostile = "a\n2026-01-01 INFO forged\u{1b}[2J\u{202e}";
        let (out, text) = (Lines::default(), format().with_ansi(false));
        let writer = out.clone();
        let builder = SubscriberBuilder::default().event_format(WithRequest::text(text));
        with_default(builder.with_writer(move || writer.clone()).finish(), || info!(error = %hostile, "{hostile}"));
        let json = WithRequest::json(format().json().flatten_event(true));
        let builder = SubscriberBuilder::default().fmt_fields(JsonFields::new()).event_format(json);
        let writer = out.clone();
        with_default(builder.with_writer(move || writer.clone()).finish(), || info!(error = %hostile, "{hostile}"));
        let lines = lines(&out);
        assert_eq!(lines.len(), 2, "{lines:?}");
        assert!(lines.iter().all(|line| !line.contains(payments_core::text::is_hidden)), "{lines:?}");
        assert!(lines[0].contains(r"a\n2026-01-01 INFO forged\"), "{lines:?}");
        let json: Value = serde_json::from_str(&lines[1]).unwrap();
        assert_eq!((&json["message"], &json["error"]), (&json!(hostile), &json!(hostile)));
    }

    #[test]
    fn a_line_of_json_has_its_request_as_a_member() {
        let (out, builder) = (Lines::default(), SubscriberBuilder::default());
        let writer = out.clone();
        let format = WithRequest::json(format().json().flatten_event(true));
        let builder = builder.fmt_fields(JsonFields::new()).event_format(format);
        with_default(builder.with_writer(move || writer.clone()).finish(), log);
        let lines: Vec<Value> = lines(&out).iter().map(|line| serde_json::from_str(line).unwrap()).collect();
        let request = json!({"id": "req_1", "method": "POST", "path": "/api/v1/payments"});
        assert_eq!((&lines[0]["request"], &lines[0]["number"]), (&request, &json!(7)));
        assert_eq!((&lines[1]["message"], lines[1].get("request")), (&json!("outside"), None));
    }
}
