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
	// Decodes is true for an engine that fails on an input that FFmpeg cannot decode: a
	// video whose header says all about it need not be probed before the run, only after
	// one that failed, to find out why.
	Decodes bool
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

// Inspected is an [Engine] on servers that may lack what the catalog's models need,
// such as the weights of one.
type Inspected interface {
	// Inspect asks every server.
	Inspect(ctx context.Context) []Inspection
}

// Inspection is what was found at a server.
type Inspection struct {
	Server string
	// Err is why the server could not be asked, else nil.
	Err error
	// Lacks is what it lacks, by model, in words such as `the node class "VAEDecode"`.
	Lacks map[string][]string
}

// InspectedOf returns the engine as an [Inspected], nil if it is none.
func InspectedOf(e Engine) Inspected {
	inspected, _ := e.(Inspected)
	return inspected
}
