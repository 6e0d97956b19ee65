package xray

import (
	"context"
	"fmt"
	"net"

	sdk "go.opentelemetry.io/otel/sdk/trace"
	api "go.opentelemetry.io/otel/trace"

	"cutroom/shared/trace"
)

const (
	// daemonHeader begins every datagram for the daemon; a document follows.
	daemonHeader = `{"format":"json","version":1}` + "\n"
	// maxDatagram is how long one may be, in bytes; a longer one is dropped.
	maxDatagram = 64<<10 - 512
	// maxAttributes bounds what describes a span, maxText each of its texts.
	maxAttributes, maxText = 32, 256
)

// NewFunction makes what traces a function: Lambda says by each invocation
// whether it is traced, and the spans beneath it are sent as they end, as a
// function that has answered is frozen with all that it meant to do later. The
// address of the daemon is what Lambda sets as AWS_XRAY_DAEMON_ADDRESS.
//
// A datagram that is lost is a span that does not show; nobody waits for it.
//
// Errors: the address is none of UDP.
func NewFunction(daemon string) (api.Tracer, error) {
	connection, err := net.Dial("udp", daemon)
	if err != nil {
		return nil, fmt.Errorf("AWS_XRAY_DAEMON_ADDRESS: %w", err)
	}
	limits := sdk.NewSpanLimits()
	limits.AttributeCountLimit, limits.AttributeValueLengthLimit, limits.EventCountLimit = maxAttributes, maxText, maxAttributes
	provider := sdk.NewTracerProvider(
		sdk.WithSyncer(&sender{connection}), sdk.WithSampler(sdk.ParentBased(sdk.NeverSample())), sdk.WithRawSpanLimits(limits))
	return provider.Tracer(trace.Scope), nil
}

// sender sends spans as datagrams, for as long as the function's process lives.
type sender struct{ connection net.Conn }

// ExportSpans sends spans; one that cannot be sent is dropped.
func (s *sender) ExportSpans(_ context.Context, spans []sdk.ReadOnlySpan) error {
	for _, span := range spans {
		text, err := Subsegment(span)
		if err == nil && len(text) <= maxDatagram {
			_, _ = s.connection.Write(append([]byte(daemonHeader), text...))
		}
	}
	return nil
}

// Shutdown ends the sending.
func (s *sender) Shutdown(context.Context) error { return s.connection.Close() }
