//! webhook-verify beside its peers: what one verification costs, in one run, as one table.
//!
//! Every contestant verifies for real: a good request must pass and a changed body must fail before anything is
//! measured. Each gets its verifier made beforehand as far as its interface allows. They take turns, round after round,
//! so that whatever else the machine does hits all of them; the table shows each one's median round.

use std::{hint::black_box, rc::Rc, time::Instant};

use base64::{Engine, prelude::BASE64_STANDARD};
use http::HeaderMap;
use webhook_verify::{Secret, Signer, Verifier};

const KEY: &[u8; 32] = b"0123456789abcdef0123456789abcdef";
/// How long one contestant works in one round.
const ROUND_NANOS: u128 = 2_000_000;
const ROUNDS: usize = 201;

struct Contestant {
    name: &'static str,
    /// Verifies the genuine request, or the same one with a changed body.
    verify: Box<dyn Fn(Body) -> bool>,
}

#[derive(Clone, Copy)]
enum Body {
    Genuine,
    Changed,
}

/// All contestants on requests with this body and so many signatures, the good one last.
fn contestants(body: &[u8], signatures: usize) -> Vec<Contestant> {
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

    // Raw HMAC over the very bytes that ours hashes, in one piece, parsing nothing.
    let messages: Rc<[Vec<u8>; 2]> =
        Rc::new([0, 1].map(|which: usize| [now.to_string().as_bytes(), b".", &bodies[which]].concat()));
    let ring_key = ring::hmac::Key::new(ring::hmac::HMAC_SHA256, KEY);
    let ring_tag = ring::hmac::sign(&ring_key, &messages[0]);
    let aws_key = aws_lc_rs::hmac::Key::new(aws_lc_rs::hmac::HMAC_SHA256, KEY);
    let aws_tag = aws_lc_rs::hmac::sign(&aws_key, &messages[0]);

    let contestant = |name, inputs: &Rc<[Vec<u8>; 2]>, verify: Box<dyn Fn(&[u8]) -> bool>| {
        let inputs = Rc::clone(inputs);
        Contestant { name, verify: Box::new(move |body| verify(black_box(&inputs[body as usize]))) }
    };
    vec![
        contestant("this crate", &bodies, Box::new(move |body| ours.verify(black_box(&header), body).is_ok())),
        contestant(
            "aws-lc-rs, raw HMAC",
            &messages,
            Box::new(move |message| aws_lc_rs::hmac::verify(&aws_key, message, aws_tag.as_ref()).is_ok()),
        ),
        contestant(
            "ring, raw HMAC",
            &messages,
            Box::new(move |message| ring::hmac::verify(&ring_key, message, ring_tag.as_ref()).is_ok()),
        ),
        contestant("svix", &bodies, Box::new(move |body| svix.verify(body, black_box(&svix_headers)).is_ok())),
        contestant(
            "standardwebhooks",
            &bodies,
            Box::new(move |body| standard.verify(body, black_box(&headers)).is_ok()),
        ),
        contestant(
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

/// The median cost of one verification for each contestant, in nanoseconds.
fn measure(body: &[u8], signatures: usize) -> Vec<(&'static str, f64)> {
    let contestants = contestants(body, signatures);
    let mut repeats = Vec::new();
    for Contestant { name, verify } in &contestants {
        assert!(verify(Body::Genuine), "{name} refuses a good request");
        assert!(!verify(Body::Changed), "{name} takes a changed body");
        let begun = Instant::now();
        (0..10).for_each(|_| assert!(verify(Body::Genuine)));
        repeats.push(usize::try_from((ROUND_NANOS * 10 / begun.elapsed().as_nanos().max(1)).max(1)).expect("a count"));
    }
    let mut rounds = vec![Vec::with_capacity(ROUNDS); contestants.len()];
    for _ in 0..ROUNDS {
        for (index, Contestant { verify, .. }) in contestants.iter().enumerate() {
            let begun = Instant::now();
            for _ in 0..repeats[index] {
                assert!(verify(Body::Genuine));
            }
            rounds[index].push(begun.elapsed().as_nanos() as f64 / repeats[index] as f64);
        }
    }
    contestants
        .iter()
        .zip(rounds)
        .map(|(contestant, mut times)| {
            times.sort_by(f64::total_cmp);
            (contestant.name, times[times.len() / 2])
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
