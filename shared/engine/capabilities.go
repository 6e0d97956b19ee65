package engine

import "context"

// Capabilities are what an engine declares about itself, for the programs that
// run it. The zero value declares nothing. An engine that edits live pictures
// implements [LiveEngine].
type Capabilities struct {
	// Prefetch is true for an engine with hardware of its own, such as a GPU
	// server: while it works, this machine has time to receive the next job and to
	// fetch its inputs, and the engine must not wait for that.
	Prefetch bool
}

// Capable is an [Engine] that declares its capabilities.
type Capable interface {
	Capabilities() Capabilities
}

// CapabilitiesOf returns what an engine declares, the zero value if it declares
// nothing.
func CapabilitiesOf(e Engine) Capabilities {
	if capable, ok := e.(Capable); ok {
		return capable.Capabilities()
	}
	return Capabilities{}
}

// Monitored is an [Engine] that may be unable to take runs, such as one on a
// server.
type Monitored interface {
	// Health returns nil while the engine takes runs.
	Health(ctx context.Context) error
}

// HealthOf returns the engine's Health; nil for an engine that always takes runs,
// or does not know.
func HealthOf(e Engine) func(context.Context) error {
	if monitored, ok := e.(Monitored); ok {
		return monitored.Health
	}
	return nil
}
