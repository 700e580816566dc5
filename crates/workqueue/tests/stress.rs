//! Many producers and workers on the normal clock: a key has one holder, and no add is lost.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::Duration,
};

use steersman_workqueue::{Priority, Queue, QueueOptions, Shutdown, limiter::Exponential};

const KEYS: usize = 50;
const PRODUCERS: usize = 4;
const WORKERS: usize = 6;
const ADDS: u64 = 50_000;

/// What the "world" knows of one key: a level that producers raise, and the level a worker last saw.
#[derive(Default)]
struct Level {
    wanted: AtomicU64,
    seen: AtomicU64,
    held: AtomicBool,
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn no_add_is_lost_and_no_key_has_two_holders() {
    let world: Arc<Vec<Level>> = Arc::new((0..KEYS).map(|_| Level::default()).collect());
    let limiter = Exponential::new(Duration::from_micros(1), Duration::from_micros(100));
    let queue = Queue::new("stress", QueueOptions::default().limiter(limiter));

    let workers: Vec<_> =
        (0..WORKERS).map(|seed| tokio::spawn(work(queue.clone(), Arc::clone(&world), seed as u64))).collect();
    let producers: Vec<_> = (0..PRODUCERS)
        .map(|seed| {
            let queue = queue.clone();
            let world = Arc::clone(&world);
            // Producers are plain threads: adding needs no runtime.
            std::thread::spawn(move || produce(&queue, &world, seed as u64))
        })
        .collect();
    tokio::task::spawn_blocking(|| producers.into_iter().for_each(|producer| producer.join().expect("it ends")))
        .await
        .expect("producers end");

    // Every key is seen at its last level. If one were lost, this would never end.
    while world.iter().any(|level| level.seen.load(Ordering::SeqCst) < level.wanted.load(Ordering::SeqCst)) {
        tokio::task::yield_now().await;
    }
    queue.shutdown(Shutdown::Drain).await;
    for worker in workers {
        worker.await.expect("a worker ends");
    }
    assert_eq!(queue.stats().depth, 0);
}

/// Raises levels, and says so: at once, in the background, delayed, or rate-limited.
fn produce(queue: &Queue<usize>, world: &[Level], seed: u64) {
    let mut random = fastrand::Rng::with_seed(seed);
    for _ in 0..ADDS {
        let key = random.usize(..KEYS);
        world[key].wanted.fetch_add(1, Ordering::SeqCst);
        match random.u8(..8) {
            0 => queue.add_after(key, Duration::from_micros(random.u64(..50))),
            1 => drop(queue.add_rate_limited(key)),
            2 => queue.add_all(&[key, (key + 1) % KEYS], Priority::Background),
            _ => queue.add(key, Priority::Live),
        }
    }
}

/// Looks at levels, succeeds or fails, and is cancelled while waiting now and then.
async fn work(queue: Queue<usize>, world: Arc<Vec<Level>>, seed: u64) {
    let mut random = fastrand::Rng::with_seed(seed);
    loop {
        let item = if random.u8(..4) == 0 {
            tokio::select! {
                biased;
                item = queue.next() => item,
                () = tokio::task::yield_now() => continue,
            }
        } else {
            queue.next().await
        };
        let Some(item) = item else { return };
        let level = &world[*item.key()];
        assert!(!level.held.swap(true, Ordering::SeqCst), "a key has one holder");
        let wanted = level.wanted.load(Ordering::SeqCst);
        if random.bool() {
            tokio::task::yield_now().await;
        }
        level.held.store(false, Ordering::SeqCst);
        match random.u8(..8) {
            0 => item.retry(),
            1 => item.again(),
            2 => drop(item),
            verdict => {
                level.seen.fetch_max(wanted, Ordering::SeqCst);
                if verdict == 3 {
                    item.again_after(Duration::from_micros(10));
                } else {
                    item.done();
                }
            }
        }
    }
}
