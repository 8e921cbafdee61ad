// Package measure is what is measured, the same for every peer in Go: a program is `NAME ACT URL JOBS`.
package measure

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"sort"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

const (
	producers = 8
	singles   = 64
	batch     = 100
	rate      = 50
)

// Payload is about 100 bytes of JSON.
type Payload struct {
	Sent int64  `json:"sent"`
	Pad  string `json:"pad"`
}

func payload() Payload { return Payload{time.Now().UnixNano(), strings.Repeat("x", 64)} }

// Peer is a queue that is measured.
type Peer interface {
	One(ctx context.Context, job Payload) error
	Many(ctx context.Context, jobs []Payload) error
	// Work starts a worker, "tuned", "one" or "latency", and answers what stops it.
	Work(ctx context.Context, how string, handle func(Payload)) (func() error, error)
}

type handled struct {
	sync.Mutex
	jobs        int
	waits       []time.Duration
	first, last time.Time
	all         chan struct{}
}

func newHandled(jobs int) *handled { return &handled{jobs: jobs, all: make(chan struct{})} }

func (h *handled) handle(job Payload) {
	now := time.Now()
	h.Lock()
	defer h.Unlock()
	if len(h.waits) == 0 {
		h.first = now
	}
	h.last = now
	h.waits = append(h.waits, time.Duration(now.UnixNano()-job.Sent))
	if len(h.waits) == h.jobs {
		close(h.all)
	}
}

func (h *handled) check() error {
	h.Lock()
	defer h.Unlock()
	if len(h.waits) != h.jobs {
		return fmt.Errorf("%d of %d jobs were handled", len(h.waits), h.jobs)
	}
	return nil
}

func concurrently(clients, jobs, batch int, act func(share int) error) error {
	var next atomic.Int64
	failures := make(chan error, clients)
	for range clients {
		go func() {
			for {
				first := int(next.Add(int64(batch))) - batch
				if first >= jobs {
					failures <- nil
					return
				}
				if err := act(min(batch, jobs-first)); err != nil {
					failures <- err
					return
				}
			}
		}()
	}
	for range clients {
		if err := <-failures; err != nil {
			return err
		}
	}
	return nil
}

func batches(ctx context.Context, peer Peer, jobs int) error {
	return concurrently(producers, jobs, batch, func(share int) error {
		made := make([]Payload, share)
		for n := range made {
			made[n] = payload()
		}
		return peer.Many(ctx, made)
	})
}

func seconds(took time.Duration) map[string]float64 { return map[string]float64{"seconds": took.Seconds()} }

// From the first job that a worker has to the last one: how long a worker takes to start is not measured.
func drain(ctx context.Context, peer Peer, jobs int, how string) (map[string]float64, error) {
	handled := newHandled(jobs)
	stop, err := peer.Work(ctx, how, handled.handle)
	if err != nil {
		return nil, err
	}
	<-handled.all
	if err := stop(); err != nil {
		return nil, err
	}
	return seconds(handled.last.Sub(handled.first)), handled.check()
}

func life(ctx context.Context, peer Peer, jobs int) (map[string]float64, error) {
	handled := newHandled(jobs)
	stop, err := peer.Work(ctx, "tuned", handled.handle)
	if err != nil {
		return nil, err
	}
	begun := time.Now()
	if err := batches(ctx, peer, jobs); err != nil {
		return nil, err
	}
	<-handled.all
	if err := stop(); err != nil {
		return nil, err
	}
	return seconds(handled.last.Sub(begun)), handled.check()
}

func latency(ctx context.Context, peer Peer, jobs int) (map[string]float64, error) {
	handled := newHandled(jobs)
	stop, err := peer.Work(ctx, "latency", handled.handle)
	if err != nil {
		return nil, err
	}
	sent := make(chan error, jobs)
	ticks := time.NewTicker(time.Second / rate)
	for range jobs {
		<-ticks.C
		job := payload()
		go func() { sent <- peer.One(ctx, job) }()
	}
	for range jobs {
		if err := <-sent; err != nil {
			return nil, err
		}
	}
	<-handled.all
	if err := stop(); err != nil {
		return nil, err
	}
	if err := handled.check(); err != nil {
		return nil, err
	}
	sort.Slice(handled.waits, func(a, b int) bool { return handled.waits[a] < handled.waits[b] })
	at := func(part float64) float64 {
		return handled.waits[min(jobs-1, int(float64(jobs)*part))].Seconds() * 1e3
	}
	return map[string]float64{"p50_ms": at(0.5), "p99_ms": at(0.99)}, nil
}

func measure(ctx context.Context, act string, peer Peer, jobs int) (map[string]float64, error) {
	begun := time.Now()
	switch act {
	case "enqueue-one":
		err := concurrently(singles, jobs, 1, func(int) error { return peer.One(ctx, payload()) })
		return seconds(time.Since(begun)), err
	case "enqueue-batch":
		err := batches(ctx, peer, jobs)
		return seconds(time.Since(begun)), err
	case "drain":
		return drain(ctx, peer, jobs, "tuned")
	case "drain-one":
		return drain(ctx, peer, jobs, "one")
	case "life":
		return life(ctx, peer, jobs)
	case "latency":
		return latency(ctx, peer, jobs)
	}
	return nil, fmt.Errorf("no such act: %s", act)
}

// Main is the program.
func Main(setup func(context.Context, string) error, open func(context.Context, string) (Peer, error)) {
	if err := run(setup, open); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(setup func(context.Context, string) error, open func(context.Context, string) (Peer, error)) error {
	ctx := context.Background()
	if os.Args[1] == "setup" {
		return setup(ctx, os.Args[2])
	}
	jobs, err := strconv.Atoi(os.Args[3])
	if err != nil {
		return err
	}
	peer, err := open(ctx, os.Args[2])
	if err != nil {
		return err
	}
	result, err := measure(ctx, os.Args[1], peer, jobs)
	if err != nil {
		return err
	}
	return json.NewEncoder(os.Stdout).Encode(result)
}
