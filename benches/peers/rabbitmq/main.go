// RabbitMQ: see README.md.
package main

import (
	"context"
	"encoding/json"
	"fmt"

	amqp "github.com/rabbitmq/amqp091-go"

	"leasehold/peers/measure"
)

const queue = "bench"

type peer struct {
	url        string
	connection *amqp.Connection
	// channels that wait for a producer
	channels chan *amqp.Channel
}

func message(job measure.Payload) (amqp.Publishing, error) {
	body, err := json.Marshal(job)
	return amqp.Publishing{DeliveryMode: amqp.Persistent, Body: body}, err
}

func (p *peer) One(ctx context.Context, job measure.Payload) error {
	return p.Many(ctx, []measure.Payload{job})
}

// A batch is published as a whole, and then its confirms are waited for.
func (p *peer) Many(ctx context.Context, jobs []measure.Payload) error {
	channel := <-p.channels
	defer func() { p.channels <- channel }()
	confirms := make([]*amqp.DeferredConfirmation, len(jobs))
	for n, job := range jobs {
		made, err := message(job)
		if err != nil {
			return err
		}
		if confirms[n], err = channel.PublishWithDeferredConfirmWithContext(ctx, "", queue, true, false, made); err != nil {
			return err
		}
	}
	for _, confirm := range confirms {
		if ok, err := confirm.WaitContext(ctx); err != nil || !ok {
			return fmt.Errorf("not confirmed: %w", err)
		}
	}
	return nil
}

func (p *peer) Work(_ context.Context, how string, handle func(measure.Payload)) (func() error, error) {
	connection, err := amqp.Dial(p.url)
	if err != nil {
		return nil, err
	}
	consumers, prefetch, acks := 8, 500, 100
	if how != "tuned" {
		consumers, prefetch, acks = 64, 8, 1
	}
	failed := make(chan error, consumers)
	for range consumers {
		channel, err := connection.Channel()
		if err != nil {
			return nil, err
		}
		if err := channel.Qos(prefetch, 0, false); err != nil {
			return nil, err
		}
		deliveries, err := channel.Consume(queue, "", false, false, false, false, nil)
		if err != nil {
			return nil, err
		}
		go func() { failed <- consume(deliveries, acks, handle) }()
	}
	stop := func() error {
		if err := connection.Close(); err != nil {
			return err
		}
		for range consumers {
			if err := <-failed; err != nil {
				return err
			}
		}
		return nil
	}
	return stop, nil
}

// Acks every so many deliveries together, and those before a pause as well: what is not acked when all is over would come again.
func consume(deliveries <-chan amqp.Delivery, acks int, handle func(measure.Payload)) error {
	waiting := 0
	for delivery := range deliveries {
		var job measure.Payload
		if err := json.Unmarshal(delivery.Body, &job); err != nil {
			return err
		}
		waiting++
		if waiting == acks || len(deliveries) == 0 {
			if err := delivery.Ack(waiting > 1); err != nil {
				return err
			}
			waiting = 0
		}
		handle(job)
	}
	return nil
}

func setup(_ context.Context, url string) error {
	connection, err := amqp.Dial(url)
	if err != nil {
		return err
	}
	defer connection.Close()
	channel, err := connection.Channel()
	if err != nil {
		return err
	}
	_, err = channel.QueueDeclare(queue, true, false, false, false, nil)
	return err
}

func open(_ context.Context, url string) (measure.Peer, error) {
	connection, err := amqp.Dial(url)
	if err != nil {
		return nil, err
	}
	p := &peer{url, connection, make(chan *amqp.Channel, 64)}
	for range cap(p.channels) {
		channel, err := connection.Channel()
		if err != nil {
			return nil, err
		}
		if err := channel.Confirm(false); err != nil {
			return nil, err
		}
		p.channels <- channel
	}
	return p, nil
}

func main() { measure.Main(setup, open) }
