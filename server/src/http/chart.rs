//! The chart of an account's activity, as SVG: a bar for each day's volume, and a line for the success rate.
//!
//! A page that embeds the chart styles it by its classes. Elsewhere its attributes give the colours: a policy that forbids
//! styles allows attributes.

use std::fmt;

use askama::Template;
use payments_core::{Activity, Balance, Currency, CurrencyActivity, Day};

use super::language::{Language, Text};

/// The edges of the plot, in tenths of a unit. The picture has 640 times 260 units.
const LEFT: i128 = 740;
const RIGHT: i128 = 5_800;
const TOP: i128 = 340;
const BOTTOM: i128 = 2_180;
/// How many lines divide the plot, not counting its base.
const LINES: i128 = 4;
/// Up to this number of days, each day's success rate has a dot.
const DOTTED: usize = 31;
const MONTHS: Text =
    ["Jan Feb Mar Apr May Jun Jul Aug Sep Oct Nov Dec", "জানু ফেব মার্চ এপ্রিল মে জুন জুলাই আগস্ট সেপ্ট অক্টো নভে ডিসে"];

#[derive(Template)]
#[template(path = "activity.svg")]
struct Picture {
    language: Language,
    title: String,
    description: String,
    sign: String,
    /// For each line across the plot: its height, its labels' height, and the volume and the success rate that the labels
    /// show.
    grid: Vec<(Tenths, Tenths, Short, i128)>,
    /// For each bar: its place, its size, and the day's figures, which a pointer over it shows.
    bars: Vec<(Tenths, Tenths, Tenths, Tenths, String)>,
    rates: Rates,
    dates: Vec<(Tenths, String)>,
}

struct Rates {
    line: String,
    dots: Vec<(Tenths, Tenths)>,
}

pub(super) fn chart(activity: &Activity, currency: Currency, language: Language) -> Result<String, askama::Error> {
    let days: Vec<_> = activity.days.iter().filter_map(|day| Some((day.date, day.of(currency)?))).collect();
    let top = LINES * step(days.iter().map(|(_, day)| day.volume.as_minor()).max().unwrap_or_default());
    let (title, description) = words(activity, &days, currency, language);
    let lines = (0..=LINES).map(|line| {
        let y = BOTTOM - (BOTTOM - TOP) * line / LINES;
        (Tenths(y), Tenths(y + 40), Short(top * line / LINES), 100 * line / LINES)
    });
    let picture = Picture {
        language,
        title,
        description,
        sign: sign(&currency).to_owned(),
        grid: lines.collect(),
        bars: bars(&days, top, language),
        rates: rates(&days),
        dates: dates(&days, language),
    };
    // The line breaks are for the template's readers only.
    Ok(picture.render()?.replace('\n', ""))
}

type Days<'d> = [(Day, &'d CurrencyActivity)];

/// The title and the description, for people who do not see the chart.
fn words(activity: &Activity, days: &Days<'_>, currency: Currency, language: Language) -> (String, String) {
    let Activity { since, until, .. } = activity;
    let (created, paid): (u64, u64) =
        days.iter().fold((0, 0), |sums, (_, day)| (sums.0 + day.created, sums.1 + day.paid));
    let volume = Balance::from_minor(days.iter().map(|(_, day)| day.volume.as_minor()).sum());
    match language {
        Language::English => (
            format!("Volume and success rate in {currency} from {since} to {until}"),
            format!("Payments created: {created}. Paid: {paid}. Volume: {volume} {currency}."),
        ),
        Language::Bangla => (
            format!("{currency} মুদ্রায় {since} থেকে {until} পর্যন্ত মোট লেনদেন ও সফলতার হার"),
            format!("তৈরি পেমেন্ট: {created}। পরিশোধিত: {paid}। মোট লেনদেন: {volume} {currency}।"),
        ),
    }
}

fn bars(days: &Days<'_>, top: i128, language: Language) -> Vec<(Tenths, Tenths, Tenths, Tenths, String)> {
    let width = (RIGHT - LEFT) * 7 / (10 * count(days.len()));
    let with_volume = days.iter().zip(centres(days.len())).filter(|((_, day), _)| day.volume.as_minor() > 0);
    let bar = |((date, day), centre): (&(Day, &CurrencyActivity), i128)| {
        let CurrencyActivity { created, paid, volume, .. } = day;
        // Keep a very small volume visible beside a large one.
        let y = (BOTTOM - (BOTTOM - TOP) * volume.as_minor() / top).min(BOTTOM - 10);
        let figures = match language {
            Language::English => format!("{date}: {volume}, {paid} of {created} paid"),
            Language::Bangla => format!("{date}: {volume}, {created}টির মধ্যে {paid}টি পরিশোধিত"),
        };
        (Tenths(centre - width / 2), Tenths(y), Tenths(width), Tenths(BOTTOM - y), figures)
    };
    with_volume.map(bar).collect()
}

/// The dates below the plot: the first, the last, and a few between them.
fn dates(days: &Days<'_>, language: Language) -> Vec<(Tenths, String)> {
    let all: Vec<_> = days.iter().zip(centres(days.len())).collect();
    let gaps = all.len().saturating_sub(1).min(3);
    let shown = (0..=gaps).filter_map(|nth| all.get(nth * all.len().saturating_sub(1) / gaps.max(1)));
    let date = |((date, _), centre): &(&(Day, &CurrencyActivity), i128)| {
        let month = usize::try_from(date.month() - 1).ok();
        let month = month.and_then(|month| language.say(MONTHS).split(' ').nth(month)).unwrap_or_default();
        (Tenths(*centre), format!("{} {month}", date.of_month()))
    };
    shown.map(date).collect()
}

/// The line of success rates. A day without payments has none, and interrupts the line.
fn rates(days: &Days<'_>) -> Rates {
    let rate = |(_, day): &(Day, &CurrencyActivity)| {
        let (created, paid) = (i128::from(day.created), i128::from(day.paid));
        (created > 0).then(|| BOTTOM - (BOTTOM - TOP) * paid.min(created) / created)
    };
    let heights: Vec<_> = days.iter().map(rate).collect();
    let at = |nth: Option<usize>| nth.and_then(|nth| heights.get(nth).copied().flatten());
    let mut rates = Rates { line: String::new(), dots: Vec::new() };
    for (nth, (height, centre)) in heights.iter().zip(centres(days.len())).enumerate() {
        let (Some(height), has_before) = (height, at(nth.checked_sub(1)).is_some()) else { continue };
        let (x, y) = (Tenths(centre), Tenths(*height));
        rates.line += &format!("{}{x} {y}", if has_before { "L" } else { "M" });
        let is_alone = !has_before && at(Some(nth + 1)).is_none();
        if is_alone || days.len() <= DOTTED {
            rates.dots.push((x, y));
        }
    }
    rates
}

/// The middle of each day's column in the plot.
fn centres(days: usize) -> impl Iterator<Item = i128> {
    (0..count(days)).map(move |nth| LEFT + (RIGHT - LEFT) * (2 * nth + 1) / (2 * count(days)))
}

fn count(days: usize) -> i128 {
    i128::try_from(days).unwrap_or(i128::MAX).max(1)
}

/// The volume between two lines: 1, 2 or 5 with zeros. Four of them cover the largest volume.
fn step(largest: i128) -> i128 {
    let mut power: i128 = 1;
    loop {
        for digit in [1, 2, 5] {
            let step = power.saturating_mul(digit);
            if step.saturating_mul(LINES) >= largest.max(LINES * 100) {
                return step;
            }
        }
        power = power.saturating_mul(10);
    }
}

fn sign(currency: &Currency) -> &str {
    match currency {
        Currency::Bdt => "৳",
        Currency::Usd => "$",
        Currency::Other(code) => code.as_str(),
    }
}

struct Tenths(i128);

impl fmt::Display for Tenths {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.0 / 10, self.0 % 10) {
            (units, 0) => write!(f, "{units}"),
            (units, tenths) => write!(f, "{units}.{tenths}"),
        }
    }
}

/// A multiple of a [`step`] in minor units, written in major units with as few digits as it has.
struct Short(i128);

impl fmt::Display for Short {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let units = [(100_000_000_000_000, "T"), (100_000_000_000, "B"), (100_000_000, "M"), (100_000, "k")];
        let (unit, letter) = units.into_iter().find(|(unit, _)| self.0 >= *unit).unwrap_or((100, ""));
        match (self.0 / unit, self.0 % unit * 10 / unit) {
            (whole, 0) => write!(f, "{whole}{letter}"),
            (whole, tenths) => write!(f, "{whole}.{tenths}{letter}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use payments_core::{DayActivity, UnknownFields};

    use super::*;

    /// The chart of days in March in taka: how many payments were created and paid, and their volume.
    fn chart(days: &[(u64, u64, i128)]) -> String {
        chart_in(Language::English, days)
    }

    fn chart_in(language: Language, days: &[(u64, u64, i128)]) -> String {
        let first: Day = "2026-03-01".parse().unwrap();
        let dates = std::iter::successors(Some(first), |day| day.next());
        let of = |(created, paid, minor): (u64, u64, i128)| CurrencyActivity {
            created,
            paid,
            volume: Balance::from_minor(minor),
            unknown: UnknownFields::new(),
        };
        let days: Vec<_> = dates
            .zip(days)
            .map(|(date, day)| DayActivity { date, bdt: of(*day), usd: of((0, 0, 0)), unknown: UnknownFields::new() })
            .collect();
        let until = days.last().unwrap().date;
        let activity = Activity { since: first, until, days, unknown: UnknownFields::new() };
        super::chart(&activity, Currency::Bdt, language).unwrap()
    }

    fn times(text: &str, part: &str) -> usize {
        text.matches(part).count()
    }

    #[test]
    fn a_bar_shows_its_days_volume_and_the_line_shows_the_success_rate() {
        let svg = chart(&[(4, 3, 400_000), (2, 1, 200_000)]);
        // The last line stands for 4000: the first bar reaches it, and the second bar half of it.
        assert!(svg.contains("y=\"34\" width=\"177.1\" height=\"184\""), "{svg}");
        assert!(svg.contains("y=\"126\" width=\"177.1\" height=\"92\""), "{svg}");
        assert!(svg.contains("<title>2026-03-01: 4000, 3 of 4 paid</title>"), "{svg}");
        assert!(svg.contains("d=\"M200.5 80L453.5 126\""), "three quarters, then a half: {svg}");
        assert!(svg.contains(">৳4k</text>") && svg.contains(">100%</text>"), "{svg}");
        assert!(svg.contains("Payments created: 6. Paid: 4. Volume: 6000 BDT."), "{svg}");
        assert!(svg.contains("in BDT from 2026-03-01 to 2026-03-02"), "{svg}");
    }

    #[test]
    fn a_chart_in_bangla_has_no_english_word() {
        let svg = chart_in(Language::Bangla, &[(4, 3, 400_000); 12]);
        let texts = svg.split('>').filter_map(|part| part.split_once('<')).map(|(text, _)| text);
        for text in texts.filter(|text| text.bytes().any(|byte| byte.is_ascii_lowercase())) {
            assert!(text.starts_with('৳') && text.ends_with('k'), "{text}");
        }
        assert!(svg.contains(">1 মার্চ</text>") && svg.contains("4টির মধ্যে 3টি পরিশোধিত"), "{svg}");
    }

    #[test]
    fn a_day_without_payments_has_no_bar_and_interrupts_the_line() {
        let svg = chart(&[(1, 1, 100), (0, 0, 0), (1, 0, 0)]);
        // One more rectangle is in the words above the plot.
        assert_eq!(times(&svg, "<rect"), 2, "{svg}");
        assert_eq!((times(&svg, "M158.3 34"), times(&svg, "M495.6 218"), times(&svg, "L")), (1, 1, 0), "{svg}");
        assert_eq!(times(&svg, "<circle"), 2, "{svg}");
    }

    #[test]
    fn a_chart_has_at_most_four_dates_and_has_dots_only_for_few_days() {
        for (days, dates, dots) in [(1, 1, 1), (2, 2, 2), (7, 4, 7), (31, 4, 31), (32, 4, 0), (366, 4, 0)] {
            let svg = chart(&vec![(2, 1, 5_000); days]);
            assert_eq!((times(&svg, "\"middle\">"), times(&svg, "<circle")), (dates, dots), "{days}");
            assert_eq!(times(&svg, "<rect"), days + 1);
            assert!(svg.contains(">1 Mar</text>"), "{svg}");
        }
        assert_eq!(times(&chart(&[(0, 0, 0); 7]), "<rect"), 1);
    }

    #[test]
    fn a_chart_has_no_inline_style_and_loads_nothing() {
        let svg = chart(&[(1, 1, 100); 30]);
        assert!(!svg.contains("style") && !svg.contains("href") && !svg.contains("<script"), "{svg}");
        assert!(svg.starts_with("<svg xmlns=\"http://www.w3.org/2000/svg\" ") && svg.contains("role=\"img\""));
    }

    #[test]
    fn the_largest_volume_is_below_the_last_line_and_labels_are_short() {
        for (largest, expected) in [
            (0, "1"),
            (400, "1"),
            (401, "2"),
            (1_000, "5"),
            (12_345_600, "50k"),
            (80_000_000_000, "200M"),
            (i128::from(u64::MAX), "50000T"),
        ] {
            let step = step(largest);
            assert!(step * LINES >= largest, "{largest}");
            assert_eq!(Short(step).to_string(), expected, "{largest}");
        }
        assert_eq!(
            (Short(150_000).to_string(), Short(50).to_string(), Short(0).to_string()),
            ("1.5k".into(), "0.5".into(), "0".into())
        );
        assert_eq!(step(i128::MAX / 2).min(1), 1, "it ends");
    }
}
