// River: see README.md.
package main

import (
	"context"
	"io"
	"log/slog"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"
	"github.com/riverqueue/river/rivermigrate"

	"leasehold/peers/measure"
)

type args struct{ measure.Payload }

func (args) Kind() string { return "bench" }

type worker struct {
	river.WorkerDefaults[args]
	handle func(measure.Payload)
}

func (w *worker) Work(_ context.Context, job *river.Job[args]) error {
	w.handle(job.Args.Payload)
	return nil
}

type peer struct {
	pool   *pgxpool.Pool
	client *river.Client[pgx.Tx]
}

func (p *peer) One(ctx context.Context, job measure.Payload) error {
	_, err := p.client.Insert(ctx, args{job}, nil)
	return err
}

func (p *peer) Many(ctx context.Context, jobs []measure.Payload) error {
	params := make([]river.InsertManyParams, len(jobs))
	for n, job := range jobs {
		params[n] = river.InsertManyParams{Args: args{job}}
	}
	_, err := p.client.InsertManyFast(ctx, params)
	return err
}

func (p *peer) Work(ctx context.Context, how string, handle func(measure.Payload)) (func() error, error) {
	workers := river.NewWorkers()
	river.AddWorker(workers, &worker{handle: handle})
	config := &river.Config{
		Logger:  slog.New(slog.NewTextHandler(io.Discard, nil)),
		Queues:  map[string]river.QueueConfig{river.QueueDefault: {MaxWorkers: 64}},
		Workers: workers,
	}
	switch how {
	case "tuned":
		// as its own bench command has it
		config.FetchCooldown, config.FetchPollInterval = 2*time.Millisecond, 20*time.Millisecond
		config.Queues[river.QueueDefault] = river.QueueConfig{MaxWorkers: 2_000}
	case "latency":
		config.FetchCooldown, config.FetchPollInterval = 2*time.Millisecond, 20*time.Millisecond
	}
	client, err := river.NewClient(riverpgxv5.New(p.pool), config)
	if err != nil {
		return nil, err
	}
	if err := client.Start(ctx); err != nil {
		return nil, err
	}
	return func() error { return client.Stop(ctx) }, nil
}

func connect(ctx context.Context, url string, connections int32) (*pgxpool.Pool, error) {
	config, err := pgxpool.ParseConfig(url)
	if err != nil {
		return nil, err
	}
	config.MaxConns = connections
	return pgxpool.NewWithConfig(ctx, config)
}

func setup(ctx context.Context, url string) error {
	pool, err := connect(ctx, url, 4)
	if err != nil {
		return err
	}
	defer pool.Close()
	migrator, err := rivermigrate.New(riverpgxv5.New(pool), nil)
	if err != nil {
		return err
	}
	_, err = migrator.Migrate(ctx, rivermigrate.DirectionUp, nil)
	return err
}

func open(ctx context.Context, url string) (measure.Peer, error) {
	pool, err := connect(ctx, url, 64)
	if err != nil {
		return nil, err
	}
	client, err := river.NewClient(riverpgxv5.New(pool), &river.Config{})
	if err != nil {
		return nil, err
	}
	return &peer{pool, client}, nil
}

func main() { measure.Main(setup, open) }
