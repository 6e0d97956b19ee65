package engine

import "context"

// Capabilities describe an engine to the programs that run it. The zero value declares nothing. An
// engine that edits live video implements [LiveEngine].
type Capabilities struct {
	// Prefetch is true for an engine on other hardware, such as a GPU server. While the engine works, this
	// machine receives the next job and fetches its inputs, so that the engine does not have to wait for them.
	Prefetch bool
	// ImageToVideo is true if the engine makes videos from images. Workers give such jobs to no other engine.
	ImageToVideo bool
}

type Capable interface {
	Capabilities() Capabilities
}

// CapabilitiesOf returns an engine's declared capabilities, or the zero value.
func CapabilitiesOf(e Engine) Capabilities {
	if capable, ok := e.(Capable); ok {
		return capable.Capabilities()
	}
	return Capabilities{}
}

// Monitored is an [Engine] that may be temporarily unable to accept runs, such as an engine on a server.
type Monitored interface {
	Health(ctx context.Context) error
}

func HealthOf(e Engine) func(context.Context) error {
	if monitored, ok := e.(Monitored); ok {
		return monitored.Health
	}
	return nil
}

// Inspected is an [Engine] whose servers may lack something that models need, such as weights.
type Inspected interface {
	Inspect(ctx context.Context) []Inspection
}

type Inspection struct {
	Server string
	// Err is why the server could not be queried, or nil.
	Err error
	// Lacks maps each model to the requirements that the server does not meet, in words such as
	// `the node class "VAEDecode"`.
	Lacks map[string][]string
}

func InspectedOf(e Engine) Inspected {
	inspected, _ := e.(Inspected)
	return inspected
}
