package main

import (
	"context"
	"os"
	"sync"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/exporter"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/pdata/ptrace"
)

// settings say where to write.
type settings struct {
	Directory string `mapstructure:"directory"`
}

// lines appends what came to a file of its kind, one batch a line.
type lines struct {
	component.StartFunc
	component.ShutdownFunc
	mutex sync.Mutex
	file  *os.File
}

func newFactory() exporter.Factory {
	defaults := func() component.Config { return &settings{Directory: "."} }
	traces := func(_ context.Context, _ exporter.Settings, config component.Config) (exporter.Traces, error) {
		to, err := open(config, "traces")
		return &traceLines{to}, err
	}
	metrics := func(_ context.Context, _ exporter.Settings, config component.Config) (exporter.Metrics, error) {
		to, err := open(config, "metrics")
		return &metricLines{to}, err
	}
	logs := func(_ context.Context, _ exporter.Settings, config component.Config) (exporter.Logs, error) {
		to, err := open(config, "logs")
		return &logLines{to}, err
	}
	stable := component.StabilityLevelDevelopment
	return exporter.NewFactory(component.MustNewType("lines"), defaults, exporter.WithTraces(traces, stable),
		exporter.WithMetrics(metrics, stable), exporter.WithLogs(logs, stable))
}

func open(config component.Config, kind string) (*lines, error) {
	path := config.(*settings).Directory + "/" + kind + ".jsonl"
	file, err := os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	return &lines{file: file}, err
}

func (to *lines) write(batch []byte, err error) error {
	if err != nil {
		return err
	}
	to.mutex.Lock()
	defer to.mutex.Unlock()
	_, err = to.file.Write(append(batch, '\n'))
	return err
}

type traceLines struct{ *lines }

func (to *traceLines) ConsumeTraces(_ context.Context, batch ptrace.Traces) error {
	return to.write((&ptrace.JSONMarshaler{}).MarshalTraces(batch))
}

type metricLines struct{ *lines }

func (to *metricLines) ConsumeMetrics(_ context.Context, batch pmetric.Metrics) error {
	return to.write((&pmetric.JSONMarshaler{}).MarshalMetrics(batch))
}

type logLines struct{ *lines }

func (to *logLines) ConsumeLogs(_ context.Context, batch plog.Logs) error {
	return to.write((&plog.JSONMarshaler{}).MarshalLogs(batch))
}

// Capabilities: what came is written as it is.
func (*lines) Capabilities() consumer.Capabilities { return consumer.Capabilities{} }
