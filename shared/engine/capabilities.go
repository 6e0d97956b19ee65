package engine

import "context"

// Capabilities are an engine's declarations for the programs that run it. The zero value declares
// nothing. An engine that edits live pictures implements [LiveEngine].
type Capabilities struct {
	// Prefetch is true for an engine on other hardware, such as a GPU server: while it works, this
	// machine receives the next job and fetches its inputs, and the engine must not wait for that.
	Prefetch bool
	// Decodes is true for an engine that fails on an input that FFmpeg cannot decode. A video with
	// a complete header is then probed only after a failed run, to find the reason.
	Decodes bool
}

type Capable interface {
	Capabilities() Capabilities
}

// CapabilitiesOf returns an engine's declarations, or the zero value.
func CapabilitiesOf(e Engine) Capabilities {
	if capable, ok := e.(Capable); ok {
		return capable.Capabilities()
	}
	return Capabilities{}
}

// Monitored is an [Engine] that may be unable to accept runs, such as an engine on a server.
type Monitored interface {
	Health(ctx context.Context) error
}

func HealthOf(e Engine) func(context.Context) error {
	if monitored, ok := e.(Monitored); ok {
		return monitored.Health
	}
	return nil
}

// Inspected is an [Engine] on servers that may lack requirements of models, such as weights.
type Inspected interface {
	Inspect(ctx context.Context) []Inspection
}

type Inspection struct {
	Server string
	// Err is why the server could not be queried, or nil.
	Err error
	// Lacks holds the missing requirements by model, in words such as `the node class "VAEDecode"`.
	Lacks map[string][]string
}

func InspectedOf(e Engine) Inspected {
	inspected, _ := e.(Inspected)
	return inspected
}
