// Package xray turns the OpenTelemetry spans of a function into documents of AWS X-Ray,
// and sends them to the daemon that Lambda runs beside it. Other programs send theirs by
// OTLP (shared/app/tracing). The format is "AWS X-Ray segment documents" in X-Ray's
// developer guide. Trace ids are those of W3C Trace Context, written 1-xxxxxxxx-xxx….
package xray

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"
	"unicode"

	"go.opentelemetry.io/otel/attribute"
	api "go.opentelemetry.io/otel/trace"
)

// maxName is the longest name of a document, in code points.
const maxName = 200

// The attributes for which a document has fields of its own (OpenTelemetry's semantic
// conventions).
const (
	methodAttribute    = "http.request.method"
	statusAttribute    = "http.response.status_code"
	routeAttribute     = "http.route"
	systemAttribute    = "rpc.system"
	serviceAttribute   = "rpc.service"
	operationAttribute = "rpc.method"
	// AWSSystem is the rpc.system of AWS calls.
	AWSSystem = "aws-api"
)

// document is a segment or a subsegment. Times are seconds since 1970.
type document struct {
	Name        string         `json:"name"`
	ID          string         `json:"id"`
	TraceID     string         `json:"trace_id"`
	ParentID    string         `json:"parent_id,omitempty"`
	Start       json.Number    `json:"start_time"`
	End         json.Number    `json:"end_time"`
	Type        string         `json:"type,omitempty"`
	Namespace   string         `json:"namespace,omitempty"`
	Error       bool           `json:"error,omitempty"`
	Fault       bool           `json:"fault,omitempty"`
	Throttle    bool           `json:"throttle,omitempty"`
	HTTP        *exchange      `json:"http,omitempty"`
	AWS         *call          `json:"aws,omitempty"`
	Annotations map[string]any `json:"annotations,omitempty"`
	Metadata    map[string]any `json:"metadata,omitempty"`
}

type exchange struct {
	Request struct {
		Method string `json:"method"`
		// URL is the pattern of the route: an address may hold ids and keys.
		URL string `json:"url,omitempty"`
	} `json:"request"`
	Response struct {
		Status int64 `json:"status,omitempty"`
	} `json:"response"`
}

type call struct {
	Operation string `json:"operation"`
}

// subsegment returns the document of a span in a function, whose segment Lambda makes.
func subsegment(span Span) ([]byte, error) {
	d := documentOf(span)
	d.Type = "subsegment"
	text, err := json.Marshal(d)
	if err != nil {
		return nil, fmt.Errorf("xray: %w", err)
	}
	return text, nil
}

func documentOf(span Span) document {
	d := document{
		Name: nameOf(span.Name), ID: span.Context.SpanID().String(), TraceID: traceID(span.Context.TraceID()),
		Start: seconds(span.Start), End: seconds(span.End),
		Fault: span.Failed, Annotations: map[string]any{},
	}
	if span.Parent.HasSpanID() {
		d.ParentID = span.Parent.SpanID().String()
	}
	if span.Kind == api.SpanKindClient {
		d.Namespace = "remote"
	}
	d.describe(span)
	for _, event := range span.Events {
		if d.Metadata == nil {
			d.Metadata = map[string]any{}
		}
		d.Metadata[event.Name] = seconds(event.Time)
	}
	return d
}

// describe copies the attributes: those without a field of their own become annotations,
// by which X-Ray finds traces.
func (d *document) describe(span Span) {
	var http exchange
	for _, a := range span.Attributes {
		switch value := a.Value; string(a.Key) {
		case methodAttribute:
			http.Request.Method = value.AsString()
		case routeAttribute:
			http.Request.URL = value.AsString()
		case statusAttribute:
			status := value.AsInt64()
			http.Response.Status = status
			d.Error, d.Throttle = status >= 400 && status < 500, status == 429
			d.Fault = d.Fault || status >= 500
		case systemAttribute:
			if value.AsString() == AWSSystem {
				d.Namespace = "aws"
			}
		case serviceAttribute:
			d.Name = nameOf(value.AsString())
		case operationAttribute:
			d.AWS = &call{Operation: value.AsString()}
		default:
			d.Annotations[Annotation(a.Key)] = value.AsInterface()
		}
	}
	if http.Request.Method != "" {
		d.HTTP = &http
	}
}

// traceID writes the id of a trace as X-Ray does.
func traceID(id api.TraceID) string {
	text := id.String()
	return "1-" + text[:8] + "-" + text[8:]
}

// seconds writes a time with all its digits, which a float64 cannot hold.
func seconds(t time.Time) json.Number {
	return json.Number(fmt.Sprintf("%d.%06d", t.Unix(), t.Nanosecond()/1000))
}

// nameOf keeps the characters that a document's name may have.
func nameOf(name string) string {
	kept := []rune(strings.Map(func(c rune) rune {
		if unicode.IsLetter(c) || unicode.IsDigit(c) || strings.ContainsRune(" _.:/%&#=+-@", c) {
			return c
		}
		return -1
	}, name))
	if len(kept) > maxName {
		kept = kept[:maxName]
	}
	if len(kept) == 0 {
		return "unnamed"
	}
	return string(kept)
}

// Annotation returns the key of the annotation that an attribute becomes, which X-Ray
// allows letters, digits and underscores; "" if X-Ray has a field for the attribute.
func Annotation(key attribute.Key) string {
	switch key {
	case methodAttribute, statusAttribute, routeAttribute, systemAttribute, serviceAttribute, operationAttribute:
		return ""
	}
	return strings.Map(func(c rune) rune {
		if c < unicode.MaxASCII && (unicode.IsLetter(c) || unicode.IsDigit(c)) {
			return c
		}
		return '_'
	}, string(key))
}
