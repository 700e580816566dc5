// Command bench-workqueue measures client-go's work queue with the loops of
// `cargo bench -p steersman-workqueue --bench queue`, so that one run on one
// machine gives both sides of each ratio. `cargo xtask bench workqueue` runs it.
//
// The queue is the one that kube-controller-manager's controllers use: typed,
// rate-limited, keyed by "namespace/name" strings, with the Prometheus metrics
// of k8s.io/component-base counting. The loops, which both sides must share:
//
//	add_get_done        Add(k), Get, Done, for k round and round a pool of 1000 keys
//	dedup_add           Add(k) of keys that are all waiting already
//	rate_limited_cycle  AddRateLimited(k), Get, Forget, Done, with a back-off of
//	                    1 ns (a real one would measure the timer)
//	delayed_add         AddAfter(k, 1 h) of 100,000 distinct keys into an empty queue
//	contended           4 threads, each Add(k), Get, Done over 50,000 keys of its
//	                    own; Get returns whatever is next, so they meet on one lock.
//	                    No key comes twice: a duplicate would be swallowed and
//	                    leave one Get waiting for ever
//
// A loop runs several rounds and the quickest counts: noise only ever adds.
// One JSON object per line goes to stdout; a value is nanoseconds per cycle.
package main

import (
	"encoding/json"
	"fmt"
	"os"
	"sync"
	"time"

	"k8s.io/client-go/util/workqueue"
	// Its init makes every named queue count, as in kube-controller-manager.
	_ "k8s.io/component-base/metrics/prometheus/workqueue"
)

const (
	rounds    = 7
	cycles    = 500_000
	delayed   = 100_000
	threads   = 4
	perThread = 50_000
)

type queue = workqueue.TypedRateLimitingInterface[string]

func newQueue() queue {
	return workqueue.NewTypedRateLimitingQueueWithConfig(
		workqueue.NewTypedItemExponentialFailureRateLimiter[string](time.Nanosecond, time.Nanosecond),
		// Only a named queue has metrics.
		workqueue.TypedRateLimitingQueueConfig[string]{Name: "bench"},
	)
}

// keys look like the keys of a cluster: 30 names in each namespace.
func keys(n int) []string {
	all := make([]string, n)
	for i := range all {
		all[i] = fmt.Sprintf("namespace-%d/name-%d", i/30, i)
	}
	return all
}

func main() {
	pool := keys(1000)
	many := keys(max(delayed, threads*perThread))

	measure("add_get_done", cycles, func(q queue) func() {
		return func() {
			for i := range cycles {
				q.Add(pool[i%len(pool)])
				key, _ := q.Get()
				q.Done(key)
			}
		}
	})
	measure("dedup_add", cycles, func(q queue) func() {
		for _, key := range pool {
			q.Add(key)
		}
		return func() {
			for i := range cycles {
				q.Add(pool[i%len(pool)])
			}
		}
	})
	measure("rate_limited_cycle", cycles/5, func(q queue) func() {
		return func() {
			for i := range cycles / 5 {
				q.AddRateLimited(pool[i%len(pool)])
				key, _ := q.Get()
				q.Forget(key)
				q.Done(key)
			}
		}
	})
	measure("delayed_add", delayed, func(q queue) func() {
		return func() {
			for _, key := range many[:delayed] {
				q.AddAfter(key, time.Hour)
			}
		}
	})
	measure("contended", threads*perThread, func(q queue) func() {
		return func() {
			var wait sync.WaitGroup
			for thread := range threads {
				own := many[thread*perThread : (thread+1)*perThread]
				wait.Go(func() {
					for _, key := range own {
						q.Add(key)
						got, _ := q.Get()
						q.Done(got)
					}
				})
			}
			wait.Wait()
		}
	})
}

// measure times the function that prepare returns, on a fresh queue each round.
func measure(name string, cycles int, prepare func(queue) func()) {
	best := time.Duration(1<<63 - 1)
	for range rounds {
		q := newQueue()
		run := prepare(q)
		start := time.Now()
		run()
		best = min(best, time.Since(start))
		q.ShutDown()
	}
	line := map[string]any{"bench": name, "value": float64(best.Nanoseconds()) / float64(cycles), "unit": "ns"}
	if err := json.NewEncoder(os.Stdout).Encode(line); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
