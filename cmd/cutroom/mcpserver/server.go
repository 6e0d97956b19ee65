// Package mcpserver serves agents over the Model Context Protocol: its tools edit media, follow
// jobs, fetch results and query language models with the user's key.
//
// It distrusts an agent's requests, because a page or image that the agent has read may have caused
// them. Tools read and write only media files in one folder, and their results never contain a key.
package mcpserver

import (
	"bytes"
	"context"
	"encoding/json"
	"io"

	"github.com/google/jsonschema-go/jsonschema"
	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/tidwall/gjson"

	"cutroom/shared/client"
	"cutroom/shared/domain/catalog"
)

type Config struct {
	// Connect returns a client for the services. The tool closes the client. Connect is called for every tool call,
	// so that a changed key takes effect.
	Connect func() (*client.Client, error)
	Latest  func(catalog.Kind) (string, error)
	Folder  *Folder
	// NewID returns unique names for files while they are being written.
	NewID   func() string
	Version string
}

// instructions explains to an agent how to combine the tools.
const instructions = "Cutroom edits videos and pictures, makes videos from text, and sends prompts to language models. " +
	"edit and generate start a job and return its job_id. get_job waits for the job. fetch writes the result of a " +
	"completed job into the folder. Paths are relative to the folder that the user allowed; nothing outside it can be " +
	"read or written. look returns a small picture of a job or of a stored file. Use share and delete_job only when the " +
	"user asks for them. Report an edit as done only after get_job shows that the job is completed, and " +
	"pass on the record's notes about how the engine understood the prompt."

// Serve serves one agent. It reads messages from in and writes responses to out, until in ends or ctx is done. Then
// it cancels the calls in flight. It responds to an invalid line with an error and continues the session.
func Serve(ctx context.Context, c Config, in io.Reader, out io.Writer) error {
	calls, hangUp := context.WithCancel(ctx)
	defer hangUp()
	answers := &shared{to: out}
	transport := &mcp.IOTransport{Reader: newLines(in, answers, hangUp), Writer: answers, MaxLineLength: -1}
	return newServer(calls, c).Run(ctx, transport)
}

func newServer(calls context.Context, c Config) *mcp.Server {
	server := mcp.NewServer(&mcp.Implementation{Name: "cutroom", Title: "Cutroom", Version: c.Version},
		&mcp.ServerOptions{Instructions: instructions, Capabilities: &mcp.ServerCapabilities{}})
	server.AddReceivingMiddleware(withoutNull)
	t := tools{c, calls}
	t.addEdits(server)
	t.addJobs(server)
	t.addModels(server)
	return server
}

// withoutNull drops null arguments, because many agents send null for optional arguments, and version 1.8.0 of the
// SDK may panic if all arguments are null.
func withoutNull(next mcp.MethodHandler) mcp.MethodHandler {
	return func(ctx context.Context, method string, request mcp.Request) (mcp.Result, error) {
		if called, ok := request.(*mcp.CallToolRequest); ok && bytes.Contains(called.Params.Arguments, []byte("null")) {
			called.Params.Arguments = argumentsWithoutNull(called.Params.Arguments)
		}
		return next(ctx, method, request)
	}
}

func argumentsWithoutNull(arguments []byte) []byte {
	object := gjson.ParseBytes(arguments)
	switch {
	case object.Type == gjson.Null:
		return nil
	case !object.IsObject():
		return arguments
	}
	kept := []byte{'{'}
	object.ForEach(func(name, value gjson.Result) bool {
		if value.Type == gjson.Null {
			return true
		}
		if len(kept) > 1 {
			kept = append(kept, ',')
		}
		kept = append(append(append(kept, name.Raw...), ':'), value.Raw...)
		return true
	})
	return append(kept, '}')
}

type tools struct {
	Config
	// calls is canceled when the session ends.
	calls context.Context
}

type call struct {
	*client.Client
	progress *progress
	shown    []mcp.Content
}

// add adds a tool to a server. If the function `handle` fails, the agent receives the error with advice.
func add[In, Out any](t tools, server *mcp.Server, tool *mcp.Tool,
	handle func(context.Context, *call, In) (Out, error)) {
	mcp.AddTool(server, tool, func(ctx context.Context, request *mcp.CallToolRequest,
		in In) (*mcp.CallToolResult, Out, error) {
		var none Out
		service, err := t.Connect()
		if err != nil {
			return nil, none, err
		}
		defer service.Close()
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		defer context.AfterFunc(t.calls, cancel)()
		c := &call{Client: service, progress: &progress{request: request}}
		out, err := handle(ctx, c, in)
		if err != nil {
			return nil, none, advised(err)
		}
		if c.shown == nil {
			return nil, out, nil
		}
		text, err := json.Marshal(out)
		if err != nil {
			return nil, none, err
		}
		content := append([]mcp.Content{&mcp.TextContent{Text: string(text)}}, c.shown...)
		return &mcp.CallToolResult{Content: content}, out, nil
	})
}

// input returns the schema of a tool's arguments. The callback edit adds rules that Go types cannot express.
func input[In any](edit func(properties map[string]*jsonschema.Schema)) *jsonschema.Schema {
	schema, err := jsonschema.For[In](nil)
	if err != nil {
		panic(err) // one of this package's types has no schema
	}
	edit(schema.Properties)
	return schema
}

func oneOf[T any](property *jsonschema.Schema, values ...T) {
	for _, value := range values {
		property.Enum = append(property.Enum, value)
	}
}

// within restricts a property to a range and documents its default. fallback may be nil.
func within(property *jsonschema.Schema, least, most float64, fallback any) {
	property.Minimum, property.Maximum = &least, &most
	if fallback != nil {
		property.Default, _ = json.Marshal(fallback) // marshaling a number cannot fail
	}
}

// The functions reads and makes describe a tool's side effects to the agent's program, which may ask the user for
// approval.
func reads(title string) *mcp.ToolAnnotations {
	return &mcp.ToolAnnotations{Title: title, ReadOnlyHint: true, OpenWorldHint: new(bool)}
}

func makes(title string, destructive bool) *mcp.ToolAnnotations {
	return &mcp.ToolAnnotations{Title: title, DestructiveHint: &destructive, OpenWorldHint: new(bool)}
}
