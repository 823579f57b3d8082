//! Benchmarks one verification with webhook-verify and its peers, and prints a table.
//!
//! Before measuring, the benchmark checks that each candidate accepts a valid request and rejects a changed body. It
//! prepares each verifier in advance as far as its API allows. Candidates take turns in each round, so that background
//! load affects all of them; the table shows each candidate's median round.

use std::{hint::black_box, rc::Rc, time::Instant};

use base64::{Engine, prelude::BASE64_STANDARD};
use http::HeaderMap;
use webhook_verify::{Secret, Signer, Verifier};

const KEY: &[u8; 32] = b"0123456789abcdef0123456789abcdef";
/// How long one candidate runs in one round.
const ROUND_NANOS: u128 = 2_000_000;
const ROUNDS: usize = 201;

struct Candidate {
    name: &'static str,
    /// Verifies the valid request, or the same one with a changed body.
    verify: Box<dyn Fn(Body) -> bool>,
}

#[derive(Clone, Copy)]
enum Body {
    Valid,
    Changed,
}

/// All candidates, for requests with this body and `signatures` signatures, the valid one last.
fn candidates(body: &[u8], signatures: usize) -> Vec<Candidate> {
    let mut changed = body.to_vec();
    changed[body.len() / 2] ^= 1;
    let bodies: Rc<[Vec<u8>; 2]> = Rc::new([body.to_vec(), changed]);
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).expect("a clock after 1970").as_secs();
    let text = std::str::from_utf8(KEY).expect("ASCII");

    let ours = Verifier::new(Secret::new(text).expect("a secret"));
    let signed = Signer::new(Secret::new(text).expect("a secret")).sign_at(body, now);
    let (time, good) = signed.as_str().split_once(',').expect("two parts");
    let bogus = format!("v1={}", "0".repeat(64));
    let header = std::iter::once(time).chain(vec![&*bogus; signatures - 1]).chain([good]).collect::<Vec<_>>().join(",");

    let registry_headers = vec![("Stripe-Signature".to_owned(), header.clone())];
    let registry_secret = registry_webhook_verify::Secret::new(text);

    let base64 = BASE64_STANDARD.encode(KEY);
    let svix = svix::webhooks::Webhook::new(&base64).expect("a secret");
    let standard = standardwebhooks::Webhook::new(&base64).expect("a secret");
    let time = i64::try_from(now).expect("before the year 292 billion");
    let good = standard.sign("msg_1", time, body).expect("UTF-8");
    let bogus = format!("v1,{}", BASE64_STANDARD.encode([0; 32]));
    let list = std::iter::repeat_n(bogus.as_str(), signatures - 1).chain([good.as_str()]).collect::<Vec<_>>().join(" ");
    let mut headers = HeaderMap::new();
    headers.insert("webhook-id", "msg_1".parse().expect("a value"));
    headers.insert("webhook-timestamp", now.to_string().parse().expect("a value"));
    headers.insert("webhook-signature", list.parse().expect("a value"));
    let svix_headers = headers.clone();

    // Raw HMAC over the same bytes in one piece, without parsing a header.
    let messages: Rc<[Vec<u8>; 2]> =
        Rc::new([0, 1].map(|which: usize| [now.to_string().as_bytes(), b".", &bodies[which]].concat()));
    let ring_key = ring::hmac::Key::new(ring::hmac::HMAC_SHA256, KEY);
    let ring_tag = ring::hmac::sign(&ring_key, &messages[0]);
    let aws_key = aws_lc_rs::hmac::Key::new(aws_lc_rs::hmac::HMAC_SHA256, KEY);
    let aws_tag = aws_lc_rs::hmac::sign(&aws_key, &messages[0]);

    let candidate = |name, inputs: &Rc<[Vec<u8>; 2]>, verify: Box<dyn Fn(&[u8]) -> bool>| {
        let inputs = Rc::clone(inputs);
        Candidate { name, verify: Box::new(move |body| verify(black_box(&inputs[body as usize]))) }
    };
    vec![
        candidate("this crate", &bodies, Box::new(move |body| ours.verify(black_box(&header), body).is_ok())),
        candidate(
            "aws-lc-rs, raw HMAC",
            &messages,
            Box::new(move |message| aws_lc_rs::hmac::verify(&aws_key, message, aws_tag.as_ref()).is_ok()),
        ),
        candidate(
            "ring, raw HMAC",
            &messages,
            Box::new(move |message| ring::hmac::verify(&ring_key, message, ring_tag.as_ref()).is_ok()),
        ),
        candidate("svix", &bodies, Box::new(move |body| svix.verify(body, black_box(&svix_headers)).is_ok())),
        candidate(
            "standardwebhooks",
            &bodies,
            Box::new(move |body| standard.verify(body, black_box(&headers)).is_ok()),
        ),
        candidate(
            "webhook-verify of the registry",
            &bodies,
            Box::new(move |body| {
                use registry_webhook_verify::{Provider, verify};
                verify(Provider::Stripe, black_box(&registry_headers), body, &registry_secret, Default::default())
                    .is_ok()
            }),
        ),
    ]
}

/// The median time of one verification for each candidate, in nanoseconds.
fn measure(body: &[u8], signatures: usize) -> Vec<(&'static str, f64)> {
    let candidates = candidates(body, signatures);
    let mut repeats = Vec::new();
    for Candidate { name, verify } in &candidates {
        assert!(verify(Body::Valid), "{name} rejects a valid request");
        assert!(!verify(Body::Changed), "{name} accepts a changed body");
        let begun = Instant::now();
        (0..10).for_each(|_| assert!(verify(Body::Valid)));
        repeats.push(usize::try_from((ROUND_NANOS * 10 / begun.elapsed().as_nanos().max(1)).max(1)).expect("a count"));
    }
    let mut rounds = vec![Vec::with_capacity(ROUNDS); candidates.len()];
    for _ in 0..ROUNDS {
        for (index, Candidate { verify, .. }) in candidates.iter().enumerate() {
            let begun = Instant::now();
            for _ in 0..repeats[index] {
                assert!(verify(Body::Valid));
            }
            rounds[index].push(begun.elapsed().as_nanos() as f64 / repeats[index] as f64);
        }
    }
    candidates
        .iter()
        .zip(rounds)
        .map(|(candidate, mut times)| {
            times.sort_by(f64::total_cmp);
            (candidate.name, times[times.len() / 2])
        })
        .collect()
}

fn main() {
    let sizes = [64, 256, 1024, 16 * 1024, 1024 * 1024];
    let mut head = None;
    for (bytes, signatures) in sizes.into_iter().flat_map(|bytes| [1, 4, 16].map(|signatures| (bytes, signatures))) {
        let body =
            "{\"id\":\"evt_1\",\"data\":\"".bytes().chain(std::iter::repeat(b'x')).take(bytes).collect::<Vec<_>>();
        let results = measure(&body, signatures);
        if head.is_none() {
            let names: Vec<&str> = results.iter().map(|(name, _)| *name).collect();
            println!("| body | signatures | {} |", names.join(" | "));
            println!("|---:|---:|{}", "---:|".repeat(names.len()));
            head = Some(());
        }
        let ours = results[0].1;
        let cells: Vec<String> = results
            .iter()
            .enumerate()
            .map(|(place, (_, nanos))| match place {
                0 => format!("{nanos:.0} ns"),
                _ => format!("{nanos:.0} ns ({:.2} ×)", nanos / ours),
            })
            .collect();
        let size = match bytes {
            bytes if bytes >= 1024 * 1024 => format!("{} MiB", bytes >> 20),
            bytes if bytes >= 1024 => format!("{} KiB", bytes >> 10),
            bytes => format!("{bytes} B"),
        };
        println!("| {size} | {signatures} | {} |", cells.join(" | "));
    }
}
