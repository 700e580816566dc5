//! Tables for the limiters.

use super::*;

fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

/// Asks for the delays of one key that fails again and again, all at the same time.
fn check(mut limiter: impl RateLimiter<&'static str>, want: &[Duration]) {
    let now = Instant::now();
    let delays: Vec<Duration> = (0..).take(want.len()).map(|requeues| limiter.delay(&"a", requeues, now)).collect();
    assert_eq!(delays, want);
}

#[test]
fn exponential_doubles_up_to_its_maximum() {
    check(Exponential::new(ms(1), ms(10)), &[ms(1), ms(2), ms(4), ms(8), ms(10), ms(10)]);
    check(Exponential::default(), &[ms(5), ms(10), ms(20)]);
    let delay = Exponential::default().delay(&"a", 17, Instant::now());
    assert_eq!(delay, ms(655_360));
    assert_eq!(Exponential::default().delay(&"a", 18, Instant::now()), Duration::from_secs(1000));
}

#[test]
fn exponential_never_overflows() {
    for requeues in [31, 32, 63, 64, 65, 1000, u32::MAX] {
        let now = Instant::now();
        assert_eq!(Exponential::default().delay(&"a", requeues, now), Duration::from_secs(1000), "{requeues}");
        let mut huge = Exponential::new(Duration::MAX, Duration::MAX);
        assert!(huge.delay(&"a", requeues, now) > Duration::from_secs(500 * 365 * 24 * 3600), "{requeues}");
        assert_eq!(Exponential::new(Duration::ZERO, ms(1)).delay(&"a", requeues, now), Duration::ZERO);
    }
}

#[test]
fn fast_then_slow() {
    check(FastSlow::new(ms(5), ms(10_000), 3), &[ms(5), ms(5), ms(5), ms(10_000), ms(10_000)]);
    check(FastSlow::new(ms(5), ms(10_000), 0), &[ms(10_000)]);
}

#[test]
fn fixed_is_fixed() {
    check(Fixed(ms(15)), &[ms(15), ms(15), ms(15)]);
}

#[test]
fn a_bucket_lets_its_burst_pass_then_its_rate() {
    check(Bucket::new(10.0, 2), &[ms(0), ms(0), ms(100), ms(200), ms(300)]);
    check(Bucket::new(10.0, 0), &[ms(100), ms(200)]);
}

#[test]
fn a_bucket_is_refilled_with_time_but_never_beyond_its_burst() {
    let start = Instant::now();
    let mut bucket = Bucket::new(10.0, 2);
    let mut ask = |at: u64| RateLimiter::<&str>::delay(&mut bucket, &"a", 0, start + ms(at));
    assert_eq!([ask(0), ask(0), ask(0)], [ms(0), ms(0), ms(100)]);
    assert_eq!(ask(200), ms(0), "one token was owed, one has come since");
    assert_eq!(ask(100), ms(100), "time that goes back counts as standing still");
    assert_eq!([ask(3_600_000), ask(3_600_000), ask(3_600_000)], [ms(0), ms(0), ms(100)]);
}

#[test]
fn a_bucket_without_a_rate_never_refills() {
    for rate in [0.0, -1.0, f64::NAN] {
        check(Bucket::new(rate, 1), &[Duration::ZERO, Duration::MAX, Duration::MAX]);
    }
}

#[test]
fn the_longer_of_two_and_both_count() {
    let limiter = MaxOf(FastSlow::new(ms(5), ms(3000), 3), MaxOf(Exponential::new(ms(1), ms(64)), Bucket::new(1.0, 3)));
    check(limiter, &[ms(5), ms(5), ms(5), ms(3000), ms(3000), ms(3000), ms(4000)]);
}

#[test]
fn the_default_is_client_gos() {
    let mut limiter = default_controller_limiter();
    let now = Instant::now();
    for requeues in 0..100 {
        let want = ms(5).saturating_mul(1_u32.checked_shl(requeues).unwrap_or(u32::MAX)).min(Duration::from_secs(1000));
        assert_eq!(limiter.delay(&"a", requeues, now), want);
    }
    assert_eq!(limiter.delay(&"b", 0, now), ms(100), "a hundred tokens are used up");
}

#[test]
fn a_wait_is_cut_to_its_maximum() {
    check(WithMaxWait(Exponential::new(ms(1), ms(1000)), ms(3)), &[ms(1), ms(2), ms(3), ms(3)]);
}

#[test]
fn jitter_lengthens_by_at_most_its_fraction_and_replays() {
    let now = Instant::now();
    let delays = |seed| -> Vec<Duration> {
        let mut limiter = WithJitter::new(Fixed(ms(1000)), 0.5, seed);
        (0..100).map(|requeues| limiter.delay(&"a", requeues, now)).collect()
    };
    assert!(delays(1).iter().all(|&delay| (ms(1000)..ms(1500)).contains(&delay)));
    assert_eq!(delays(1), delays(1));
    assert_ne!(delays(1), delays(2));
    check(WithJitter::new(Fixed(Duration::MAX), 1.0, 1), &[Duration::MAX]);
    check(WithJitter::new(Fixed(ms(10)), -1.0, 1), &[ms(10)]);
}

#[test]
fn limiters_can_be_boxed_and_nested() {
    let inner: Box<dyn RateLimiter<&'static str>> = Box::new(Exponential::new(ms(1), ms(8)));
    check(WithMaxWait(inner, ms(3)), &[ms(1), ms(2), ms(3)]);
}
