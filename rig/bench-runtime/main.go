// Command bench-runtime is a controller of thirty lines on controller-runtime,
// the twin of the one in crates/cli/benches/runtime/controller.rs, so
// that one run on one machine gives both sides of each ratio.
// `cargo xtask bench runtime` builds and runs it.
//
//	bench-runtime NAMESPACE
//
// It watches the ConfigMaps of one namespace with one worker, and notes how old
// each one is when its turn comes: now less the nanoseconds in the annotation
// "bench/sent", which the writer set right before sending. Ones without it are
// for warming up.
//
// It says "ready" when its caches are filled, and when its standard input ends
// one line of JSON: {"count":…,"p50_us":…,"p99_us":…,"max_us":…}.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"
)

const sent = "bench/sent"

type ages struct {
	client.Client
	mu  sync.Mutex
	all []int64
}

func (a *ages) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	var object corev1.ConfigMap
	if err := a.Get(ctx, request.NamespacedName, &object); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if at, err := strconv.ParseInt(object.Annotations[sent], 10, 64); err == nil {
		a.mu.Lock()
		defer a.mu.Unlock()
		a.all = append(a.all, time.Now().UnixNano()-at)
	}
	return ctrl.Result{}, nil
}

// summary is what the parent reads; nearest rank, as the twin counts it.
func (a *ages) summary() map[string]float64 {
	a.mu.Lock()
	defer a.mu.Unlock()
	slices.Sort(a.all)
	at := func(part float64) float64 {
		if len(a.all) == 0 {
			return 0
		}
		return float64(a.all[int(part*float64(len(a.all)-1))]) / 1e3
	}
	return map[string]float64{"count": float64(len(a.all)), "p50_us": at(0.5), "p99_us": at(0.99), "max_us": at(1)}
}

func main() {
	if err := run(os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, "bench-runtime:", err)
		os.Exit(1)
	}
}

func run(namespace string) error {
	ctrl.SetLogger(logr.Discard())
	manager, err := ctrl.NewManager(ctrl.GetConfigOrDie(), ctrl.Options{
		Cache:   cache.Options{DefaultNamespaces: map[string]cache.Config{namespace: {}}},
		Metrics: server.Options{BindAddress: "0"},
	})
	if err != nil {
		return err
	}
	ages := &ages{Client: manager.GetClient()}
	if err := ctrl.NewControllerManagedBy(manager).For(&corev1.ConfigMap{}).Complete(ages); err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(context.Background())
	go func() {
		if manager.GetCache().WaitForCacheSync(ctx) {
			fmt.Println("ready")
		}
		io.Copy(io.Discard, os.Stdin)
		cancel()
	}()
	if err := manager.Start(ctx); err != nil {
		return err
	}
	return json.NewEncoder(os.Stdout).Encode(ages.summary())
}
